"""Further ways to run a node: recomputed, on several devices at once, with other figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.workload.array_input import MEMORY_PARTS

AMOUNTS = ("size", *MEMORY_PARTS)


@dataclass(frozen=True)
class Alternative:
    """A further way to run a node, with all figures that the node has when it is run in this way.

    All figures are those of one device. Nodes of a colour class choose alternatives of the same name.

    Parameters
    ----------
    name
        A text that no other alternative of the node has.
    times
        The time of a sample on every kind of the graph, in the unit of the graph's times.
    degree
        How many devices run the node together. All nodes of a stage have the same degree.
    size, parameters, gradients, optimizer, activations, workspace
        Memory of each of these devices in bytes, as the node's fields of these names.
    inputs, outputs
        By the id of a producer or a consumer: the time that the node's device pays in addition to the cost
        of the edge, if the edge leads from or to another stage.

    Examples
    --------
    >>> Alternative("recomputed", {"gpu": 4.0}, activations=1e6).degree
    1
    """

    name: str
    times: Mapping[str, float]
    degree: int = 1
    size: float = 0.0
    parameters: float = 0.0
    gradients: float = 0.0
    optimizer: float = 0.0
    activations: float = 0.0
    workspace: float = 0.0
    inputs: Mapping[Any, float] = field(default_factory=dict)
    outputs: Mapping[Any, float] = field(default_factory=dict)

    @property
    def parts(self) -> tuple[float, ...]:
        """The parts of the memory in the order of :data:`MEMORY_PARTS`."""
        return tuple(getattr(self, name) for name in MEMORY_PARTS)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; those that have their default are left out."""
        degree = {} if self.degree == 1 else {"degree": self.degree}
        times = {kind: float(time) for kind, time in self.times.items()}
        amounts = {name: float(getattr(self, name)) for name in AMOUNTS if getattr(self, name)}
        sides = {"inputs": self.inputs, "outputs": self.outputs}
        sent = {
            name: {str(node): float(x) for node, x in side.items()} for name, side in sides.items() if side
        }
        return {"name": self.name, **degree, "times": times, **amounts, **sent}


NONE: Mapping[Any, Sequence[Alternative]] = MappingProxyType({})


class Alternatives(Mapping[Any, tuple[Alternative, ...]]):
    """The further ways to run the nodes of a graph, by the id of the node; nodes without any are left out.

    Parameters
    ----------
    by_node
        A sequence of alternatives for each node id.

    Raises
    ------
    WorkloadError
        If it is no mapping to sequences of alternatives.

    Examples
    --------
    >>> ways = Alternatives({0: [Alternative("slow", {"gpu": 2.0}), Alternative("pair", {"gpu": 0.7}, 2)]})
    >>> [way.name for way in ways.kept(lambda way: way.degree > 1)[0]]
    ['pair']
    """

    def __init__(self, by_node: Mapping[Any, Sequence[Alternative]] = NONE) -> None:
        rule = "must be a mapping from node id to a sequence of partitioner.Alternative"
        if not isinstance(by_node, Mapping):
            raise WorkloadError([Flaw("graph", "alternatives", shown(by_node), rule)])
        for node, ways in by_node.items():
            if not isinstance(ways, Sequence) or not all(isinstance(way, Alternative) for way in ways):
                raise WorkloadError([Flaw(f"node {shown(node)}", "alternatives", shown(ways), rule)])
        self._by_node = {node: tuple(ways) for node, ways in by_node.items() if ways}

    def __getitem__(self, node: int | str) -> tuple[Alternative, ...]:
        return self._by_node[node]

    def __iter__(self) -> Any:
        return iter(self._by_node)

    def __len__(self) -> int:
        return len(self._by_node)

    def __repr__(self) -> str:
        return f"<Alternatives: {sum(map(len, self.values()))} of {len(self)} nodes>"

    def kept(self, wanted: Callable[[Alternative], bool]) -> Alternatives:
        """Return the alternatives for which a function is true."""
        return self.changed(lambda way: way if wanted(way) else None)

    def changed(self, change: Callable[[Alternative], Alternative | None]) -> Alternatives:
        """Return the alternatives as a function changes them, without those for which it returns None."""
        found = {node: [change(way) for way in ways] for node, ways in self.items()}
        return Alternatives({node: [way for way in ways if way is not None] for node, ways in found.items()})

    @property
    def have_parts(self) -> bool:
        """Whether one of them gives a part of the memory other than its size."""
        return any(any(way.parts) for ways in self.values() for way in ways)

    @property
    def text(self) -> str:
        """All data, in a form that is the same on every machine."""
        by_text = sorted(self.items(), key=lambda item: str(item[0]))
        return repr([(node, [way.as_dict() for way in ways]) for node, ways in by_text])


def figures(ways: Sequence[Alternative], kinds: Sequence[str]) -> tuple[NDArray[np.float64], ...]:
    """Return the times, the sizes and the parts of the memory of some ways.

    The shapes are (kinds, ways), (ways,) and (5, ways).
    """
    times = np.array([[way.times[kind] for way in ways] for kind in kinds], dtype=np.float64)
    parts = np.array([way.parts for way in ways], dtype=np.float64).reshape(len(ways), len(MEMORY_PARTS))
    return (
        times.reshape(len(kinds), len(ways)),
        np.array([way.size for way in ways], dtype=np.float64),
        parts.T,
    )
