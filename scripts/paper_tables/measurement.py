"""Our own values for one workload, each computed when it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from paper_tables.catalogue import LAYERS, Entry
from paper_tables.sources import Source
from partitioner import (
    BackendUnavailable,
    Evaluation,
    NoPlanFound,
    Placing,
    Plan,
    evaluate,
    load,
    load_placement,
    solve,
)
from partitioner.methods.baselines.graph_partitioning.scotch import solve_scotch
from partitioner.methods.dp.lattice import ideal_lattice
from partitioner.methods.expand import expand
from partitioner.methods.method import Outcome, Settings
from partitioner.methods.places import parts_at
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.variants import ChainProblem

MAX_IDEALS = 2**22
COVERS_PER_IDEAL = 12
SEARCH_SECONDS = 30.0
AS_IN_PAPER = Settings(placing=Placing(imbalance=0.05))  # Scotch's default, which the paper's program keeps


@dataclass(frozen=True)
class Effort:
    """When an integer program may stop: after so many seconds, or once proven within a fraction."""

    time_limit: float = 300.0
    gap: float = 0.01


class Measurement:
    """What we make of a published workload.

    Parameters
    ----------
    source
        Its files.
    effort
        For the integer programs.
    """

    def __init__(self, source: Source, effort: Effort = Effort()) -> None:
        self.entry: Entry = source.entry
        self.source = source
        self.effort = effort
        self._programs: dict[tuple[str, str], Plan] = {}
        workload = load(source.workload)
        self.graph, self.devices = workload.graph, workload.devices

    @cached_property
    def plan(self) -> Plan:
        """The plan of the exact dynamic program."""
        return solve(self.graph, self.devices, method="dp")

    @cached_property
    def linear(self) -> Plan:
        """The plan of the dynamic program over linear orders."""
        return solve(self.graph, self.devices, method="dpl")

    @cached_property
    def ideals(self) -> int | None:
        """How many ideals the contracted forward graph has, None if more than can be counted."""
        problem = contract(self.graph, self.devices)
        coarser = problem.coarser if isinstance(problem, ChainProblem) else None
        for candidate in (problem, coarser):
            if candidate is not None:
                lattice = ideal_lattice(candidate, MAX_IDEALS, COVERS_PER_IDEAL * MAX_IDEALS)
                if lattice is not None:
                    return lattice.size
        return None

    @cached_property
    def path(self) -> Plan | None:
        """The plan of the PipeDream baseline, which is for layer graphs only."""
        if self.entry.folder != LAYERS:
            return None
        return solve(self.graph, self.devices, method="pipedream_path")

    @cached_property
    def expert(self) -> Evaluation | None:
        """The hand-made split, backward nodes completed by colocation."""
        if self.source.expert is None:
            return None
        placement = load_placement(self.source.expert, self.graph, self.devices)
        return evaluate(self.graph, self.devices, placement)

    @cached_property
    def single(self) -> Evaluation:
        """Everything on one accelerator, whether it fits or not."""
        return evaluate(self.graph, self.devices, dict.fromkeys(self.graph.ids, "accelerator0"))

    @cached_property
    def layered(self) -> Plan | None:
        """The exact plan that keeps layers together, None without layers in the file."""
        if not self.graph.layer_labels:
            return None
        return solve(self.graph, self.devices, method="dp", granularity="layer")

    @cached_property
    def scotch(self) -> Evaluation | None:
        """What Scotch's parts are worth, whether they fit the memory or not; None if it is not here."""
        problem = contract(self.graph, self.devices, Goal(split="free"))
        try:
            place = solve_scotch.places(problem, AS_IN_PAPER)
        except BackendUnavailable:
            return None
        parts = Outcome(problem, parts_at(problem, place), np.inf, 0.0, "heuristic")
        placement = expand(self.graph, self.devices, parts)
        assert placement is not None
        return evaluate(self.graph, self.devices, placement.device)

    def program(self, split: str, objective: str = "throughput") -> Plan:
        """The plan of the integer program; for GPipe it starts from the one for throughput."""
        key = (split, objective)
        if key not in self._programs:
            start = None if objective == "throughput" else self.program(split)
            self._programs[key] = solve(
                self.graph,
                self.devices,
                objective,
                method="ip",
                split=split,
                warm_start=start,
                time_limit=self.effort.time_limit,
                gap=self.effort.gap,
            )
        return self._programs[key]

    def searched(self, method: str) -> Plan | None:
        """The free split that a local search finds in at most half a minute, None if it finds none."""
        limit = min(self.effort.time_limit, SEARCH_SECONDS)
        try:
            return solve(self.graph, self.devices, method=method, split="free", time_limit=limit)
        except NoPlanFound:
            return None

    def under_gpipe(self, split: str) -> float:
        """What the plan for throughput is worth under GPipe."""
        return evaluate(self.graph, self.devices, self.program(split).placement, "gpipe").value
