"""The graph with some operations split: the share of each part, and the new nodes and edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from partitioner.methods.placers.dpos_draft import CONCATENATE, PART, SPLIT, Draft, Share
from partitioner.planning.splitting.dimension import Dimension
from partitioner.planning.splitting.names import names_of
from partitioner.workload.array_input import MEMORY_PARTS
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Floats, Graph, Ints

ROWS = {name: i for i, name in enumerate(MEMORY_PARTS)}
COPIED = [ROWS[name] for name in ("parameters", "gradients", "optimizer")]
Choice = tuple[Dimension, int]
Splits = Mapping[int, Choice]


@dataclass(frozen=True, eq=False)
class Splitter:
    """Computes the shares of the parts of an operation.

    Parameters
    ----------
    graph, devices
        The graph to split operations of, and what runs it.
    split_time, concatenate_time
        What these nodes take, in the unit of the graph's times, on every kind.
    """

    graph: Graph
    devices: Devices
    split_time: float
    concatenate_time: float

    @cached_property
    def has_parts(self) -> bool:
        """Whether the graph distinguishes parameters from other memory."""
        return bool(self.graph.parts.any())

    def shares(self, node: int, dimensions: Iterable[Dimension], most: int) -> dict[Choice, Share]:
        """Return the shares of the parts of a node, for every dimension and number of parts up to `most`."""
        choices = [(d, n) for d in dimensions for n in range(2, most + 1)]
        if not choices:
            return {}
        count = np.array([n for _, n in choices])
        divided = np.array([d.divides_parameters for d, _ in choices])
        size, parts = self.memory(np.full(len(choices), node), divided, count)
        held, time = (size + parts.sum(axis=0)).tolist(), self._times(node, count)
        return {
            (d, n): Share(n, time[i], held[i], d.divides_input, d.divides_output)
            for i, (d, n) in enumerate(choices)
        }

    def share(self, node: int, dimension: Dimension, count: int) -> Share:
        """Return the share of each of `count` parts of a node."""
        return self.shares(node, [dimension], count)[dimension, count]

    def _times(self, node: int, count: Ints) -> Floats:
        """Return the times of split node, part and concatenate node on each device, shape (k, D, 3)."""
        rows = []
        for kind in self.devices.kinds:
            times = np.full((len(count), 3), np.inf)
            if kind.row in self.graph.kinds:
                row = self.graph.kinds.index(kind.row)
                own = self.graph.time[row, node] / count if self.graph.allowed[row, node] else np.inf
                times[:, 0], times[:, 1], times[:, 2] = self.split_time, own, self.concatenate_time
            rows += [times * kind.time_factor] * kind.count
        return np.ascontiguousarray(np.stack(rows, axis=1))

    def memory(self, nodes: Ints, divided: Floats, count: Ints) -> tuple[Floats, Floats]:
        """Return size, shape (k,), and kinds of memory, shape (5, k), of one part of each of `k` nodes.

        Where the graph does not tell parameters from other memory, all of it is taken for parameters.
        """
        parameters = np.where(divided, count, 1)
        parts = self.graph.parts[:, nodes] / count
        parts[COPIED] = self.graph.parts[COPIED][:, nodes] / parameters
        return self.graph.size[nodes] / (count if self.has_parts else parameters), parts

    def graph_of(self, draft: Draft, splits: Splits) -> Graph:
        """Return the graph of a draft, its nodes and edges in the order of the tasks.

        Parameters
        ----------
        draft
            What came out of splitting the graph.
        splits
            For each split node its dimension and the number of parts.
        """
        graph, tasks, role = self.graph, draft.tasks, draft.role
        node, new, part = tasks.node, role >= SPLIT, role == PART
        count, divided = np.ones(len(graph), dtype=np.int64), np.zeros(len(graph), dtype=bool)
        for i, (dimension, number) in splits.items():
            count[i], divided[i] = number, dimension.divides_parameters
        shared, idle = np.where(part, count[node], 1), new & ~part
        size, parts = self.memory(node, divided[node], shared)
        time = graph.time[:, node] / shared
        time[:, role == SPLIT], time[:, role == CONCATENATE] = self.split_time, self.concatenate_time
        ids = names_of(graph.ids, draft, splits)
        return replace(
            graph,
            ids=ids,
            time=time,
            allowed=graph.allowed[:, node] | idle,
            size=np.where(idle, 0.0, size),
            parts=np.where(idle, 0.0, parts),
            cache=np.where(idle, 0.0, graph.cache[node] / shared),
            backward=graph.backward[node],
            color=np.where(new, -1, graph.color[node]),
            layer=np.where(new, -1, graph.layer[node]),
            edges=np.column_stack((tasks.before.items, tasks.before.owners())),
            cost=tasks.cost[tasks.before_tensor],
            names=tuple(
                str(own) if is_new else graph.names[i]
                for i, own, is_new in zip(node.tolist(), ids, new.tolist(), strict=True)
            ),
            extras=type(graph.extras)(top=graph.extras.top),
        )
