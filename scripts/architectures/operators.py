"""A costed forward operator of a graph."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Times:
    """Time in ms of one operator on the accelerator and on the host."""

    accelerator: float
    host: float

    def scaled(self, factor: float) -> "Times":
        """Return both times multiplied by ``factor``."""
        return Times(self.accelerator * factor, self.host * factor)


@dataclass(frozen=True)
class Operator:
    """One forward operator, with what its backward operator would cost.

    Attributes
    ----------
    name : str
        Layer and operator, separated by a slash.
    layer : int
        Index of the layer that it belongs to.
    inputs, saved : tuple of int
        Producers of its inputs, and producers (itself included) whose output the backward
        operator reads again; indices into the list of operators.
    output_bytes, activation_bytes : float
        Size of the output tensor, and memory that it occupies (0 for views).
    parameters : float
        Number of trainable parameters.
    forward, backward : Times
        Time in ms of the two passes.
    gradient : bool
        Whether its output depends differentiably on a parameter.
    tied_to : int or None
        Operator whose parameters it shares.
    """

    name: str
    layer: int
    inputs: tuple[int, ...]
    saved: tuple[int, ...]
    output_bytes: float
    activation_bytes: float
    parameters: float
    forward: Times
    backward: Times
    gradient: bool
    tied_to: int | None = None
