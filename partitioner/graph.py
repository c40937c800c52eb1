"""The computation graph as arrays: nodes with times and sizes, edges with transfer times."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partitioner.checks import graph_flaws
from partitioner.errors import Flaw, WorkloadError, shown

NodeId = int | str
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Extras:
    """Fields of the input that mean nothing to the solvers but are kept and written back."""

    top: Mapping[str, Any] = field(default_factory=dict)
    nodes: Sequence[Mapping[str, Any]] = ()
    edges: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, eq=False)
class Graph:
    """A profiled computation graph of `n` nodes and `m` edges. Immutable and checked when made.

    Most users come by one through :func:`partitioner.load`, :meth:`Graph.from_arrays` or
    :func:`partitioner.from_networkx`.

    Parameters
    ----------
    kinds
        Names of the device kinds that `time` and `allowed` speak of, in order.
    ids
        The user's name of every node, an integer or a text, distinct even as texts.
    time
        Shape (kinds, n): processing time of each node on each kind, in the unit of `cost`.
    allowed
        Shape (kinds, n): may the node run on the kind?
    size
        Shape (n,): memory each node takes on its device, in the unit of the devices' memory.
    backward
        Shape (n,): True for nodes of the backward pass.
    color, layer
        Shape (n,): classes numbered from 0, -1 for none. Nodes of one colour share a device.
    edges
        Shape (m, 2): positions of producer and consumer.
    cost
        Shape (m,): time to move the edge's data between a device and host memory. Edges out of
        one node with equal costs carry one tensor, with different costs one tensor each
        (paper, Appendix E.1).
    names
        A title for each node, for people.
    color_labels, layer_labels
        What the user calls each class.
    extras
        Fields that are kept but not used.

    Raises
    ------
    WorkloadError
        Naming every node or edge, field and value that breaks a rule.
    """

    kinds: tuple[str, ...]
    ids: tuple[NodeId, ...]
    time: Floats
    allowed: Bools
    size: Floats
    backward: Bools
    color: Ints
    layer: Ints
    edges: Ints
    cost: Floats
    names: tuple[str, ...] = ()
    color_labels: tuple[Hashable, ...] = ()
    layer_labels: tuple[Hashable, ...] = ()
    extras: Extras = Extras()

    def __post_init__(self) -> None:
        for name in ("time", "allowed", "size", "backward", "color", "layer", "edges", "cost"):
            array = getattr(self, name).copy()
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        flaws = graph_flaws(self)
        if flaws:
            raise WorkloadError(flaws)

    @classmethod
    def from_arrays(
        cls,
        time: Mapping[str, ArrayLike],
        edges: Iterable[tuple[NodeId, NodeId]] = (),
        cost: ArrayLike = 0.0,
        *,
        ids: Sequence[NodeId] | None = None,
        size: ArrayLike = 0.0,
        backward: ArrayLike = False,
        allowed: Mapping[str, ArrayLike] | None = None,
        color: Sequence[Hashable | None] | None = None,
        layer: Sequence[Hashable | None] | None = None,
        names: Sequence[str] | None = None,
        extras: Extras | None = None,
    ) -> Graph:
        """Make a graph from one array a field; scalars stand for all nodes or edges.

        Parameters
        ----------
        time
            For each kind of device the times of the n nodes.
        edges
            Pairs of ids, producer first.
        cost
            Transfer time of each edge, or one for all.
        ids
            The nodes' ids; 0 to n-1 by default.
        size, backward
            One value a node, or one for all.
        allowed
            For a kind, which nodes may run on it; a kind that is left out takes every node.
        color, layer
            A class for each node, None for none.
        names, extras
            Titles of the nodes, and fields to keep.

        Raises
        ------
        WorkloadError
            If lengths differ or a value breaks a rule.

        Examples
        --------
        >>> graph = Graph.from_arrays({"gpu": [1.0, 2.0, 1.0]}, [(0, 1), (1, 2)], cost=0.5)
        >>> len(graph), graph.time.shape
        (3, (1, 3))
        """
        kinds = tuple(time)
        ids = tuple(range(_length(time))) if ids is None else tuple(ids)
        n = len(ids)
        position = {node: i for i, node in enumerate(ids)}
        pairs = _positions(list(edges), position)
        color_codes, color_labels = classes([None] * n if color is None else color)
        layer_codes, layer_labels = classes([None] * n if layer is None else layer)
        may = allowed or {}
        return cls(
            kinds=kinds,
            ids=ids,
            time=_rows([column(time[k], n, float, f"time[{k}]") for k in kinds], n, float),
            allowed=_rows([column(may.get(k, True), n, bool, f"allowed[{k}]") for k in kinds], n, bool),
            size=column(size, n, float, "size"),
            backward=column(backward, n, bool, "backward"),
            color=color_codes,
            layer=layer_codes,
            edges=pairs,
            cost=column(cost, len(pairs), float, "cost"),
            names=tuple(names) if names is not None else tuple(str(node) for node in ids),
            color_labels=color_labels,
            layer_labels=layer_labels,
            extras=extras or Extras(),
        )

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def position(self) -> Mapping[NodeId, int]:
        """Position of each id."""
        return {node: i for i, node in enumerate(self.ids)}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything that a solver sees, the same on every machine."""
        parts = [repr((self.kinds, self.ids)).encode()]
        arrays = (self.time, self.allowed, self.size, self.backward, self.color, self.layer)
        parts += [a.tobytes() for a in (*arrays, self.edges, self.cost)]
        return hashlib.sha256(b"|".join(parts)).hexdigest()


def classes(labels: Sequence[Hashable | None]) -> tuple[Ints, tuple[Hashable, ...]]:
    """Number the distinct labels in order of appearance; None becomes -1."""
    code: dict[Hashable, int] = {}
    codes = [-1 if label is None else code.setdefault(label, len(code)) for label in labels]
    return np.array(codes, dtype=np.int64), tuple(code)


def column(values: ArrayLike, n: int, dtype: type, name: str) -> NDArray[Any]:
    """One value for each of `n` places, from an array of that length or from a scalar."""
    try:
        array: NDArray[Any] = np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise WorkloadError([Flaw("graph", name, shown(values), "must be numbers")]) from error
    if array.shape not in ((), (n,)):
        rule = f"must have shape ({n},), as many values as there are places"
        raise WorkloadError([Flaw("graph", name, f"shape {array.shape}", rule)])
    return np.broadcast_to(array, (n,))


def _length(time: Mapping[str, ArrayLike]) -> int:
    return max((np.size(np.asarray(row)) for row in time.values()), default=0)


def _rows(rows: list[NDArray[Any]], n: int, dtype: type) -> NDArray[Any]:
    return np.array(rows, dtype=dtype).reshape(len(rows), n)


def _positions(edges: list[tuple[NodeId, NodeId]], position: Mapping[NodeId, int]) -> Ints:
    unknown = [
        Flaw(f"edge {source} -> {target}", "", shown(end), "is not the id of a node")
        for source, target in edges
        for end in (source, target)
        if end not in position
    ]
    if unknown:
        raise WorkloadError(unknown)
    pairs = [(position[source], position[target]) for source, target in edges]
    return np.array(pairs, dtype=np.int64).reshape(len(pairs), 2)
