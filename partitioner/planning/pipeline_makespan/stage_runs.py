"""Stages on devices that have several of them, simulated."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.planning.evaluate import evaluate
from partitioner.planning.pipeline_makespan.stage_borders import StageBorders
from partitioner.planning.pipeline_makespan.stage_estimates import StageEstimates
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.constraints import NONE
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.modules import modules_of
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.virtual_stages.schedules import VIRTUAL


class StageRuns:
    """Runs of stages of supernodes on the devices of a workload.

    Parameters
    ----------
    graph, devices, regime
        The workload and the settings of the pipeline, whose schedule has several stages on a device.
    problem
        The contracted graph.

    Raises
    ------
    OptionError
        If the devices are of several kinds, or nodes are pinned to devices.
    """

    def __init__(self, graph: Graph, devices: Devices, regime: Regime, problem: PipelineProblem) -> None:
        from partitioner.methods.virtual_stages.solve import only_kind  # loads numba

        self.graph, self.devices, self.regime, self.problem = graph, devices, regime, problem
        self.schedule = VIRTUAL[str(regime.schedule)]
        self.chunks = self.schedule.chunks_for(regime.virtual_stages)
        self.kind = devices.kinds[only_kind(problem)]

    @property
    def microbatches(self) -> int:
        """How many microbatches there are."""
        return self.regime.microbatches or 1

    def counts(self) -> list[int]:
        """Return the numbers of devices that the schedule runs the microbatches on, largest first."""
        rule, batch = self.schedule.rule, self.microbatches
        counts = range(min(self.kind.count, self.problem.n // self.chunks), 0, -1)
        return [count for count in counts if not rule(count, batch)]

    @property
    def work(self) -> Floats:
        """Shape (supernodes,): the processing time."""
        return np.asarray(self.problem.time.min(axis=0).sum(axis=0))

    def layers(self, numbered: bool) -> Floats:
        """Return the share of a layer that each supernode is, or of a layer with a number in its name."""
        modules = modules_of(self.graph)
        counts = [not numbered or any(map(str.isdigit, name)) for name in modules.names]
        counted = np.array(counts, dtype=np.float64)
        inside = modules.of >= 0
        share = counted / np.maximum(1, np.bincount(modules.of[inside], minlength=len(counted)))
        member = self.problem.member[inside]
        return np.bincount(member, share[modules.of[inside]], self.problem.n).astype(np.float64)

    def stage_of(self, solution: Solution) -> Ints:
        """Return the stage of every supernode, shape (supernodes,)."""
        order = list(solution.order or ())
        of = solution.stage_of or {node: order.index(name) for node, name in solution.placement.items()}
        stage = np.zeros(self.problem.n, dtype=np.int64)
        stage[self.problem.member] = [of[node] for node in self.graph.ids]
        return stage

    def solution(self, borders: StageBorders) -> Solution:
        """Return the stages on their devices."""
        ranks = self.schedule.ranks(borders.stages // self.chunks, self.chunks)
        order = tuple(self.kind.device(rank) for rank in ranks)
        where = borders.stage[self.problem.member].tolist()
        stage_of = dict(zip(self.graph.ids, where, strict=True))
        return Solution({node: order[i] for node, i in stage_of.items()}, order=order, stage_of=stage_of)

    @cached_property
    def estimates(self) -> StageEstimates:
        """The estimates of makespans."""
        kind = self.devices.kinds.index(self.kind)
        given = self.schedule, self.chunks, self.microbatches
        return StageEstimates(self.graph, self.problem, kind, *given)

    def obeys(self, borders: StageBorders) -> bool:
        """Whether stages obey the rules of the call."""
        limited = self.kind.memory is not None or self.regime.constraints != NONE
        return not limited or self.evaluated(self.solution(borders)).feasible

    def evaluated(self, solution: Solution) -> Evaluation:
        """Return the evaluation of a solution under the rules of the call."""
        regime = self.regime
        given: dict[str, Any] = {"schedule": regime.schedule, "microbatches": regime.microbatches}
        limits = regime.constraints
        return evaluate(self.graph, self.devices, solution, constraints=limits, split="chain", **given)
