"""Makespans of stages, estimated fast: as simulated if every stage waits for its neighbours alone."""

from __future__ import annotations

import numpy as np

from partitioner.methods.virtual_stages.pass_graph import PassGraph, pass_graph
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.nets import build_nets
from partitioner.problem.problem import Nets, Problem
from partitioner.workload.graph import Graph
from partitioner.workload.virtual_stages.schedules import VirtualSchedule


class StageEstimates:
    """Estimates of makespans; a tenth of a millisecond each, where a simulation takes a hundred times that.

    Parameters
    ----------
    graph, problem, kind
        The graph, its contraction, and the number of the devices' kind.
    schedule, chunks, microbatches
        The schedule, how many stages each device has, and how many microbatches there are.
    input_share
        The part of a backward pass that the stage before waits for, under schedules that split these passes.
    """

    def __init__(
        self,
        graph: Graph,
        problem: Problem,
        kind: int,
        schedule: VirtualSchedule,
        chunks: int,
        microbatches: int,
        input_share: float,
    ) -> None:
        self.problem, self.kind = problem, kind
        self.schedule, self.chunks, self.microbatches = schedule, chunks, microbatches
        self.input_share = input_share
        self.nets: Nets = build_nets(graph, problem.member, problem.n, "passes")
        self.cost = self.nets.cost * problem.transfer_factor[kind]
        self.graphs: dict[int, PassGraph] = {}

    def makespan(self, stage: Ints) -> float:
        """Return the makespan of stages, by the stage of every supernode, shape (supernodes,)."""
        from partitioner.methods.virtual_stages.kernel import path_ends  # loads numba

        graph = self._graph(int(stage.max()) + 1)
        length, sent, fetched = self._times(stage, graph)
        end, via = np.empty(len(graph.stage)), np.empty(len(graph.stage), dtype=np.int64)
        return float(end[path_ends(graph, length, sent, fetched, end, via)])

    def _graph(self, stages: int) -> PassGraph:
        if stages not in self.graphs:
            given = stages // self.chunks, self.chunks, self.microbatches
            self.graphs[stages] = pass_graph(self.schedule, *given)
        return self.graphs[stages]

    def _times(self, stage: Ints, graph: PassGraph) -> tuple[Floats, Floats, Floats]:
        """Return how long passes occupy devices, and what others wait after and before them in addition."""
        from partitioner.methods.virtual_stages.kernel import StageNets, stage_transfers

        nets, count = self.nets, graph.stages
        ranks = np.array(self.schedule.ranks(count // self.chunks, self.chunks))
        into, out = np.zeros((count, 2)), np.zeros((count, 2))
        of_stages = StageNets(nets.pins.start, nets.pins.items, self.cost, nets.source, nets.made, nets.read)
        stage_transfers(stage, ranks, of_stages, into, out)
        forward, backward = (_sums(stage, time, count) for time in self.problem.time[self.kind])
        length = graph.lengths(forward, backward, self.input_share)
        sent, fetched = np.zeros((count, 3)), np.zeros((count, 3))
        if self.problem.communication == "sequential":
            length[:, :2] += into + out
        else:
            sent[:, :2], fetched[:, :2] = out, into
        return length, sent, fetched


def _sums(stage: Ints, time: Floats, count: int) -> Floats:
    return np.bincount(stage, time, count).astype(np.float64)
