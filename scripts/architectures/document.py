"""The nodes and edges of one instance file as they are written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from architectures.cost_model import Accelerator, transfer_ms
from architectures.operators import Times

SIGNIFICANT_DIGITS = 6


@dataclass(frozen=True)
class Machine:
    """What the graph is to be split over: accelerators of one sort, and CPUs."""

    accelerator: Accelerator
    accelerators: int
    cpus: int


@dataclass(frozen=True)
class Options:
    """How a graph is written.

    Attributes
    ----------
    training : bool
        Whether the backward part is added.
    operators : bool
        Whether it is an operator graph: layer ids are written, and the sum of gradients
        where a tensor fans out and the gradient of the loss are operators of their own.
    separate_weights : bool
        Whether parameters are zero-time source nodes, not part of their operator.
    host_only : collection of str
        Last parts of the names of operators that accelerators do not support.
    parts : bool
        Whether the parts of the memory are written one by one, not their sum as `size`.
    """

    training: bool = False
    operators: bool = False
    separate_weights: bool = False
    host_only: Collection[str] = ()
    parts: bool = False


def significant(value: float) -> float | int:
    """Return ``value`` at six significant digits, as an integer where it is one."""
    rounded = float(f"{value:.{SIGNIFICANT_DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded


class Document:
    """Nodes and edges in the order of writing; times in ms, sizes in bytes."""

    def __init__(self, accelerator: Accelerator, options: Options) -> None:
        self.accelerator = accelerator
        self.options = options
        self.nodes: list[dict[str, Any]] = []
        self.edges: list[dict[str, Any]] = []
        self._edge_fields: list[dict[str, float | int]] = []

    def node(
        self,
        name: str,
        times: Times,
        memory: Mapping[str, float],
        output_bytes: float,
        *,
        layer: int,
        backward: bool = False,
        color: int | None = None,
    ) -> int:
        """Write a node and return its id.

        Parameters
        ----------
        name : str
            Name of the operator; its last part decides whether it is for the host only.
        times : Times
            Time in ms on either processor.
        memory : mapping of str to float
            The parts of the memory that it occupies.
        output_bytes : float
            Size of its output.
        layer : int
            Layer, written in operator graphs only.
        backward : bool, optional
            Whether it belongs to the backward part.
        color : int, optional
            Colour class.
        """
        kind = name.removesuffix("/backward").rsplit("/", 1)[-1]
        node: dict[str, Any] = {
            "id": len(self.nodes),
            "name": name,
            "supportedOnFpga": kind not in self.options.host_only,
            "cpuLatency": significant(times.host),
            "fpgaLatency": significant(times.accelerator),
            "isBackwardNode": backward,
        }
        if color is not None:
            node["colorClass"] = color
        if self.options.operators:
            node["layerId"] = layer
        self.nodes.append({**node, **self._memory(memory)})
        cost = significant(transfer_ms(self.accelerator, output_bytes))
        self._edge_fields.append({"cost": cost, "size": significant(output_bytes)})
        return len(self.nodes) - 1

    def _memory(self, parts: Mapping[str, float]) -> dict[str, float | int]:
        if self.options.parts:
            return {part: significant(value) for part, value in parts.items() if value}
        return {"size": significant(sum(parts.values()))}

    def edge(self, source: int, target: int) -> None:
        """Write an edge, which carries the whole output of its source."""
        self.edges.append({"sourceId": source, "destId": target, **self._edge_fields[source]})
