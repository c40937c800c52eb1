"""A forward graph under construction, costed operator by operator."""

from collections.abc import Iterable

from architectures.cost_model import Accelerator, Kind, Processor, time_ms
from architectures.operators import Operator, Times


class GraphBuilder:
    """Collects the operators of one network for one accelerator and one host.

    Parameters
    ----------
    accelerator : Accelerator
        Device whose times and element size are used.
    host : Processor
        The CPU.
    """

    def __init__(self, accelerator: Accelerator, host: Processor) -> None:
        self.accelerator = accelerator
        self.host = host
        self.operators: list[Operator] = []
        self.layers: list[str] = []

    def layer(self, name: str) -> None:
        """Start a layer: the operators added from now on belong to it."""
        self.layers.append(name)

    def add(
        self,
        name: str,
        kind: Kind,
        inputs: Iterable[int],
        elements: float,
        *,
        flops: float = 0.0,
        parameters: float = 0.0,
        traffic: float | None = None,
        kernels: int = 1,
        tied_to: int | None = None,
    ) -> int:
        """Add an operator to the current layer.

        Parameters
        ----------
        name : str
            Name within the layer.
        kind : Kind
            Its sort.
        inputs : iterable of int
            Operators whose outputs it reads.
        elements : float
            Number of elements of its output.
        flops, parameters : float, optional
            Floating-point operations and trainable parameters.
        traffic : float, optional
            Elements moved to and from memory; each operand once by default.
        kernels : int, optional
            Kernels launched one after another.
        tied_to : int, optional
            Operator whose parameters it shares.

        Returns
        -------
        int
            Index of the operator.
        """
        index, producers = len(self.operators), tuple(dict.fromkeys(inputs))
        width = self.accelerator.element_bytes
        if traffic is None:
            traffic = elements + parameters + self._elements(producers)
        forward = Times(
            time_ms(self.accelerator, kind, flops, traffic * width, kernels),
            time_ms(self.host, kind, flops, traffic * width, kernels),
        )
        trained = parameters > 0 or tied_to is not None
        self.operators.append(
            Operator(
                name=f"{self.layers[-1]}/{name}",
                layer=len(self.layers) - 1,
                inputs=producers,
                saved=_saved(kind, producers, index),
                output_bytes=elements * width,
                activation_bytes=0.0 if kind.free else elements * width,
                parameters=parameters,
                forward=forward,
                backward=forward.scaled(kind.backward),
                gradient=kind.differentiable and (trained or self._any_gradient(producers)),
                tied_to=tied_to,
            )
        )
        return index

    def _elements(self, producers: tuple[int, ...]) -> float:
        total = sum(self.operators[producer].output_bytes for producer in producers)
        return total / self.accelerator.element_bytes

    def _any_gradient(self, producers: tuple[int, ...]) -> bool:
        return any(self.operators[producer].gradient for producer in producers)


def _saved(kind: Kind, producers: tuple[int, ...], index: int) -> tuple[int, ...]:
    inputs = producers if kind.saves_inputs else ()
    return (*inputs, index) if kind.saves_output else inputs
