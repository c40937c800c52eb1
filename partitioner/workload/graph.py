"""The computation graph as arrays: nodes with times and sizes, edges with transfer times."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from partitioner.base.argument_types import require_items, require_type
from partitioner.base.errors import WorkloadError, shown
from partitioner.workload.alternatives import Alternatives
from partitioner.workload.array_input import (
    MEMORY_PARTS,
    by_kind,
    classes,
    first_of_equal,
    flags,
    frozen,
    length,
    listed,
    numbers,
    positions,
    titles,
)  # fmt: skip
from partitioner.workload.extras import Extras as Extras
from partitioner.workload.graph_validation import graph_flaws, id_flaws, layout_flaws, name_flaws
from partitioner.workload.layer import Layer
from partitioner.workload.layer_graph import layer_arguments

NodeId = int | str
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
SHOWN_KINDS = 6
COLUMNS = {
    "time": np.float64, "allowed": np.bool_, "size": np.float64, "backward": np.bool_,
    "color": np.int64, "layer": np.int64, "edges": np.int64, "cost": np.float64, "parts": np.float64,
    "cache": np.float64,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Graph:
    """A profiled computation graph of `n` nodes and `m` edges; immutable, and checked when it is made.

    :func:`partitioner.load`, :meth:`Graph.from_arrays` and :func:`partitioner.from_networkx` return one.

    Parameters
    ----------
    kinds
        Names of the device kinds that the rows of `time` and `allowed` belong to.
    ids
        The user's name of every node, an integer or a text, distinct even as texts.
    time
        Shape (kinds, n): processing time of each node on each kind, in the unit of `cost`.
    allowed
        Shape (kinds, n): whether the node may run on the kind.
    size
        Shape (n,): memory each node takes on its device, in the unit of the devices' memory.
    backward
        Shape (n,): True for nodes of the backward pass.
    color, layer
        Shape (n,): classes numbered from 0, -1 for none. Nodes of one colour must share a device.
    edges
        Shape (m, 2): positions of producer and consumer.
    cost
        Shape (m,): time to move the edge's data between a device and host memory. If all edges out of a
        node have the same cost, they carry one tensor; otherwise each edge carries a tensor of its own
        (paper, Appendix E.1). Of edges that join the same nodes at the same cost only the first is kept.
    names
        A title for each node, to be shown to users; by default its id.
    color_labels, layer_labels
        The user's name of each class.
    extras
        Fields that are kept but not used.
    parts
        Shape (5, n): memory of each node in addition to `size`, in the order of
        :data:`partitioner.workload.array_input.MEMORY_PARTS`: its parameters, their gradients, the state of
        the optimizer, the activations that one sample keeps for the backward pass, and the workspace, which
        is needed only while the node runs. How often each part counts depends on the schedule.
    cache
        Shape (n,): memory that the node keeps for every sample in flight, such as its keys and values of a
        sequence. Only objective ``"capacity"`` counts it.

    alternatives
        Further ways to run nodes. What the other fields say of a node is always one way to run it, on one
        device.

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
    extras: Extras = field(default_factory=Extras)
    parts: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    cache: Floats = field(default_factory=lambda: np.zeros(0))
    alternatives: Alternatives = field(default_factory=Alternatives)

    def __post_init__(self) -> None:
        for name in ("kinds", "ids", "names", "color_labels", "layer_labels"):
            object.__setattr__(self, name, tuple(require_items(f"graph: {name}", getattr(self, name))))
        if not self.names:
            object.__setattr__(self, "names", titles(None, self.ids))
        require_type("graph: extras", self.extras, Extras)
        for name, shape in (("parts", (len(MEMORY_PARTS), len(self.ids))), ("cache", (len(self.ids),))):
            if isinstance(given := getattr(self, name), np.ndarray) and given.size == 0:
                object.__setattr__(self, name, np.zeros(shape))
        for name, dtype in COLUMNS.items():
            object.__setattr__(self, name, frozen(getattr(self, name), name, dtype))
        if not layout_flaws(self):
            self._drop_repeated_edges()
        object.__setattr__(self, "alternatives", Alternatives(self.alternatives))
        flaws = graph_flaws(self)
        if flaws:
            raise WorkloadError(flaws)

    def _drop_repeated_edges(self) -> None:
        """Keep the first of the edges that join the same nodes at the same cost: they carry one tensor."""
        kept = first_of_equal(self.edges, self.cost)
        if len(kept) == len(self.cost):
            return
        if len(self.extras.edges) == len(self.cost):
            extra = [self.extras.edges[i] for i in kept.tolist()]
            object.__setattr__(self, "extras", Extras(self.extras.top, self.extras.nodes, extra))
        for name in ("edges", "cost"):
            object.__setattr__(self, name, frozen(getattr(self, name)[kept], name, COLUMNS[name]))

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
        cache: ArrayLike = 0.0,
        **parts: ArrayLike,
    ) -> Graph:
        """Return a graph from one array for each field; a scalar is the value of all nodes or edges.

        Parameters
        ----------
        time
            For each kind of device the times of the n nodes.
        edges
            Pairs of ids, producer first.
        cost
            Transfer time of each edge, or one for all edges.
        ids
            The nodes' ids; 0 to n-1 by default.
        size, backward, cache
            One value for each node, or one for all nodes.
        allowed
            For a kind, which nodes may run on it; on a kind that is left out every node may run.
        color, layer
            A class for each node, None for none.
        names, extras
            Titles of the nodes, and further fields to keep.
        **parts
            ``parameters``, ``gradients``, ``optimizer``, ``activations`` (of one sample) and ``workspace``:
            one value for each node, or one for all nodes; 0 by default.

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
        kinds = tuple(by_kind(time, "time"))
        ids = tuple(range(length(time)) if ids is None else listed(ids, "ids"))
        n, pairs = len(ids), listed(edges, "edges")
        may = by_kind({} if allowed is None else allowed, "allowed")
        flaws = name_flaws(kinds, may, parts) + id_flaws(ids)
        if flaws:
            raise WorkloadError(flaws)

        def node(i: int) -> str:
            return f"node {shown(ids[i])}"

        def edge(i: int) -> str:
            return f"edge {shown(pairs[i][0])} -> {shown(pairs[i][1])}"

        ends = positions(pairs, ids)
        color_codes, color_labels = classes(color, n, "color", node)
        layer_codes, layer_labels = classes(layer, n, "layer", node)
        times = [numbers(time[k], n, f"time[{k}]", node) for k in kinds]
        return cls(
            kinds=kinds,
            ids=ids,
            time=np.array(times).reshape(len(kinds), n),
            allowed=np.array(
                [flags(may.get(k, True), n, f"allowed[{k}]", node) for k in kinds], dtype=bool
            ).reshape(len(kinds), n),
            size=numbers(size, n, "size", node),
            backward=flags(backward, n, "backward", node),
            color=color_codes,
            layer=layer_codes,
            edges=ends,
            cost=numbers(cost, len(ends), "cost", edge),
            names=titles(names, ids),
            color_labels=color_labels,
            layer_labels=layer_labels,
            extras=Extras() if extras is None else extras,
            parts=np.array([numbers(parts.get(part, 0.0), n, part, node) for part in MEMORY_PARTS]),
            cache=numbers(cache, n, "cache", node),
        )

    @classmethod
    def chain(
        cls,
        layers: Iterable[Layer],
        *,
        bandwidth: float | None = None,
        training: bool | None = None,
        microbatches: int = 1,
    ) -> Graph:
        """Return the graph of layers; :func:`partitioner.workload.layer_graph.layer_arguments` says how.

        Examples
        --------
        >>> layers = [Layer("a", forward=1.0, backward=2.0), Layer("b", forward=1.5, backward=3.0)]
        >>> Graph.chain(layers).ids
        ('a', 'b', 'a/backward', 'b/backward')
        """
        return cls.from_arrays(**layer_arguments(layers, bandwidth, training, microbatches))

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        kinds = ", ".join(self.kinds[:SHOWN_KINDS]) + (", ..." if len(self.kinds) > SHOWN_KINDS else "")
        return f"<Graph: {len(self)} nodes, {len(self.edges)} edges, times on {kinds}>"

    @cached_property
    def position(self) -> Mapping[NodeId, int]:
        """The position of each id among the nodes."""
        return {node: i for i, node in enumerate(self.ids)}

    @property
    def weights(self) -> Floats:
        """Shape (n,): the weights that replicas exchange: parameters, or the size if no parts are given."""
        return self.parts[0] if self.parts.any() or self.alternatives.have_parts else self.size

    @property
    def divided(self) -> Floats:
        """Shape (n,): memory that the copies of a stage divide; none where nodes have alternatives."""
        zero = 0 if self.alternatives else self.extras.zero
        _, gradients, optimizer, *_ = self.parts
        return np.asarray(optimizer * (zero >= 1) + gradients * (zero >= 2))

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all data of the graph that a solver reads, the same on every machine."""
        columns = (self.time, self.allowed, self.size, self.backward, self.color, self.layer)
        arrays, ways = (*columns, self.edges, self.cost), self.alternatives.text if self.alternatives else ""
        names = (self.kinds, self.ids, *([self.extras.zero] if self.divided.any() else []))
        return digest_of(names, arrays, self.parts, self.cache, ways)


# The digest of the data of a graph.


def digest_of(
    names: object, arrays: Iterable[NDArray[Any]], parts: NDArray[Any], cache: NDArray[Any], ways: str
) -> str:
    """Return the SHA-256 of all data of a graph that a solver reads, the same on every machine.

    Parameters
    ----------
    names
        What the graph names: kinds of devices and nodes.
    arrays
        The columns that every graph has.
    parts, cache, ways
        Parts of memory, caches and the text of alternatives, which count only if the graph has them.
    """
    data = [repr(names).encode(), *(array.tobytes() for array in arrays)]
    data += [parts.tobytes()] if parts.any() else []
    data += [b"cache", cache.tobytes()] if cache.any() else []
    data += [ways.encode()] if ways else []
    return hashlib.sha256(b"|".join(data)).hexdigest()
