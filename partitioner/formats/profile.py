"""Reading of profiles of PipeDream (msr-fiddle/pipedream): the text file ``graph.txt``.

A line is a node, ``node1 -- description -- forward_compute_time=1.5, backward_compute_time=3.0,
activation_size=64.0, parameter_size=128.0``, with or without `` -- stage_id=0`` at its end, or an
edge: a tab and ``node1 -- node2``. Times are in ms, sizes in bytes; an activation of several tensors
is a list, ``[64.0; 32.0]``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import path_name, read_text
from partitioner.formats.profile_lines import Lines, read_edge, read_node
from partitioner.workload.graph import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Profile:
    """A profiled forward graph of `n` nodes and `m` edges, in the order of the file.

    Parameters
    ----------
    ids, descriptions
        The name and the description of each node.
    forward, backward
        Shape (n,): times in ms.
    activation, parameters
        Shape (n,): bytes of all output tensors of a node, and of its weights.
    edges
        Shape (m, 2): positions of producer and consumer.
    stage
        Shape (n,): the stage that a planner chose, -1 for none.
    """

    ids: tuple[str, ...]
    descriptions: tuple[str, ...]
    forward: Floats
    backward: Floats
    activation: Floats
    parameters: Floats
    edges: Ints
    stage: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def trimmed(self) -> Profile:
        """Return the profile without sources ``Input*`` and sinks ``__getitem__*``, as PipeDream plans it."""
        inputs = self._named("Input") & (np.bincount(self.edges[:, 1], minlength=len(self)) == 0)
        rest = self._only(~inputs)
        unread = np.bincount(rest.edges[:, 0], minlength=len(rest)) == 0
        return rest._only(~(rest._named("__getitem__") & unread))

    def _named(self, beginning: str) -> Bools:
        return np.array([text.startswith(beginning) for text in self.descriptions], dtype=bool)

    def _only(self, kept: Bools) -> Profile:
        """Return the subgraph of the nodes that are kept."""
        place = np.cumsum(kept) - 1
        ids, descriptions = (
            tuple(text for text, keep in zip(texts, kept, strict=True) if keep)
            for texts in (self.ids, self.descriptions)
        )
        return Profile(
            ids=ids,
            descriptions=descriptions,
            forward=self.forward[kept],
            backward=self.backward[kept],
            activation=self.activation[kept],
            parameters=self.parameters[kept],
            edges=place[self.edges[kept[self.edges].all(axis=1)]],
            stage=self.stage[kept],
        )


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Return the profile in a ``graph.txt`` of PipeDream's profiler or planner.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    WorkloadError
        Naming the file and every line, field, value and rule that was broken.
    """
    lines = Lines()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line[:1] in ("\t", " ") and line.strip():
            read_edge(line.strip(), f"line {number}", lines)
        elif line.strip():
            read_node(line.strip(), f"line {number}", lines)
    edges = _positions(lines)
    if not lines.ids and not lines.flaws:
        lines.flaws.append(Flaw("file", "nodes", "", "there must be at least one"))
    flaws = lines.flaws or _cycle_flaws(lines.ids, edges)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    forward, backward, activation, parameters = np.array(lines.numbers, dtype=np.float64).T
    stage = np.array(lines.stage, dtype=np.int64)
    names = tuple(lines.ids), tuple(lines.descriptions)
    return Profile(*names, forward, backward, activation, parameters, edges, stage)


def _positions(lines: Lines) -> Ints:
    """Return the edges between known nodes as positions, shape (m, 2).

    Other edges add a flaw, unless the id of some node could not be read.
    """
    place = {node: i for i, node in enumerate(lines.ids)}
    if not lines.nameless:
        lines.flaws += [
            Flaw(where, name, shown(end), "is not the id of a node")
            for source, target, where in lines.edges
            for name, end in (("source", source), ("target", target))
            if end not in place
        ]
    pairs = [(place[s], place[t]) for s, t, _ in lines.edges if s in place and t in place]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _cycle_flaws(ids: Sequence[str], edges: Ints) -> list[Flaw]:
    graph: nx.DiGraph[int] = nx.DiGraph(edges.tolist())
    if nx.is_directed_acyclic_graph(graph):
        return []
    cycle = [source for source, _ in nx.find_cycle(graph)]
    path = " -> ".join(ids[i] for i in [*cycle, cycle[0]])
    return [Flaw("edges", "", path, "is a cycle; the graph must have none")]
