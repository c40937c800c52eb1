"""The least memory of a device with which there is a plan, by halving a range of memory."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx

from partitioner.base.argument_types import require_type
from partitioner.base.interruption import StopEvent
from partitioner.evaluation.text.figures import amount
from partitioner.methods.halving import Halving
from partitioner.methods.method import Progress
from partitioner.planning.options import check_values
from partitioner.planning.sizing.pool import kind_in_question, most_held, with_memory
from partitioner.planning.sizing.trial import SizeTarget, SizeTrial, SizeTrials, trials_of
from partitioner.planning.sizing.words import found_lines, within
from partitioner.results.plan import Plan
from partitioner.workload.devices import MEMORY_TOLERANCE, Devices
from partitioner.workload.graph import Graph

JUST_BELOW = 1 - 3 * MEMORY_TOLERANCE  # of a memory: a plan that needs all of it does not fit this part of it


@dataclass(frozen=True, eq=False)
class LeastMemory:
    """The least memory of each device of a kind with which there is a plan.

    Parameters
    ----------
    kind
        The kind of device whose memory is in question.
    memory
        Bytes of each device (in the unit of the graph's sizes) with which there is a plan.
    bound
        No plan does with less; the search is proven if it equals `memory`.
    max_time_per_sample
        The limit of the plan's value, in the unit of the graph's times; None if any plan will do.
    plan
        The plan on devices with that memory.
    trials
        The amounts of memory that were tried, with value and bound of each; infinity for no limit.
    seconds
        How long the search took.
    """

    kind: str
    memory: float
    bound: float
    max_time_per_sample: float | None
    plan: Plan
    trials: tuple[SizeTrial, ...]
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether no plan does with less memory."""
        return self.bound == self.memory

    def __repr__(self) -> str:
        return f"<LeastMemory: {self.memory:.6g} for {self.kind}, at least {self.bound:.6g}, {self.plan!r}>"

    def summary(self, width: int | None = None) -> str:
        """Return memory, proof, trials and plan as text of at most `width` columns."""
        limit = within(self.max_time_per_sample, self.plan.time_unit)
        proof = (
            "less is proven not to suffice"
            if self.proven
            else f"at least {amount(self.bound)}B ({self.bound:,.0f} bytes) are needed"
        )
        held = f"{amount(self.memory)}B ({self.memory:,.0f} bytes)"
        head = f"{held} of memory for each device of kind {self.kind} suffice{limit}; {proof}"
        sizes = [_size(trial.size) for trial in self.trials]
        return found_lines(head, sizes, self.trials, self.plan, width)

    def to_json(self) -> str:
        """Return the memory, its bound, the trials and the plan as one JSON object."""
        record = {name: getattr(self, name) for name in ("kind", "memory", "bound", "max_time_per_sample")}
        tried = [trial.as_dict() for trial in self.trials]
        tried = [each | {"size": None if math.isinf(each["size"]) else each["size"]} for each in tried]
        record |= {"seconds": self.seconds, "trials": tried}
        return json.dumps(record | {"plan": json.loads(self.plan.to_json())}, indent=1)


def least_memory(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    max_time_per_sample: float | None = None,
    objective: str | None = None,
    *,
    kind: str | None = None,
    tokens_per_second: float | None = None,
    batch_seconds: float | None = None,
    gap: float = 0.0,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    **options: Any,
) -> LeastMemory:
    """Find the least memory of each device of a kind with which there is a plan, within a limit of its time.

    What fits a memory also fits a larger one. The search halves the range between a memory that is proven
    too small and the largest one that a device of the best plan holds; it ends once it is proven that no plan
    does with less than that, apart from the tolerance of limits (three parts in 10^9).

    Parameters
    ----------
    graph
        As for :func:`partitioner.solve`.
    devices
        The devices. The memory limit of the kind in question has no effect, those of other kinds hold.
    max_time_per_sample
        The largest value of the objective that a plan may have, in the unit of the graph's times; None if
        any plan will do. Where CPUs without a limit may run everything, the answer is then 0.
    objective
        As for :func:`partitioner.solve`, but not ``"capacity"``; None for throughput, or for the makespan
        where `batch_seconds` is given.
    tokens_per_second, batch_seconds
        In place of `max_time_per_sample`: the tokens that pass in a second, where the graph says those of a
        sample, or the seconds of a batch.
    kind
        The kind of device; None for the only one that pays for transfers.
    gap
        Stop once the memory is proven within this fraction of the least one.
    time_limit
        Seconds for the whole search, of which each trial takes at most half of what is left; None for no
        limit. What a trial leaves open leaves `bound` below `memory`.
    on_progress, stop
        As for :func:`partitioner.solve`.
    **options
        Further options of :func:`partitioner.solve`, such as ``split``, ``schedule`` or ``constraints``.

    Returns
    -------
    LeastMemory
        The memory, a lower bound for it, and the best plan found on devices with that memory.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value that it may not have.
    InfeasibleError
        If it is proven that memory without a limit does not suffice.
    NoPlanFound
        If no plan within the limit was found with memory without a limit.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], size=[2.0, 3.0, 2.0])
    >>> found = least_memory(graph, Devices.accelerated(2))
    >>> found.memory, found.bound
    (5.0, 5.0)
    >>> least_memory(graph, Devices.accelerated(1)).memory
    7.0
    """
    started = time.perf_counter()
    require_type("devices", devices, Devices)
    check_values(gap=gap)
    limits: dict[str, Any] = {"time_limit": time_limit, "on_progress": on_progress, "stop": stop}
    target = SizeTarget(objective, max_time_per_sample, tokens_per_second, batch_seconds)
    trials = trials_of(graph, devices, target, options=options, **limits)
    with trials.interruption:
        search = _MemorySearch(trials, devices, kind_in_question(devices, kind).name, gap)
        plan = search.run()
    return LeastMemory(
        kind=search.kind,
        memory=search.range.high,
        bound=search.range.bound,
        max_time_per_sample=trials.longest,
        plan=plan,
        trials=tuple(trials.made),
        seconds=time.perf_counter() - started,
    )


class _MemorySearch:
    """The search: a plan holds `range.high`, and it is proven that none does with less than `range.bound`."""

    def __init__(self, trials: SizeTrials, devices: Devices, kind: str, gap: float) -> None:
        self.trials, self.devices, self.kind, self.gap = trials, devices, kind, gap
        self.range = Halving(0.0, math.inf)

    def run(self) -> Plan:
        """Narrow the range, and return the best plan found on devices with the least memory."""
        words = f"devices of kind {self.kind} without a memory limit"
        plan = self._keep(self.trials.first(math.inf, with_memory(self.devices, self.kind, None), words))
        close = False  # whether the next trial is just below the memory of the best plan
        while not self._ended:
            below = self.range.high * JUST_BELOW
            trial = self._tried(below if close else self.range.middle)
            if trial.suffices:
                plan = self._keep(trial)
            else:
                least = self.range.high if trial.size == below else trial.size
                self.range.settle(least, suffices=False, refuted=trial.excluded)
            close = not trial.suffices
        last = self._tried(self.range.high, best=True)
        return last.plan if last.suffices and last.plan is not None else plan

    @property
    def _ended(self) -> bool:
        low, memory = self.range.low, self.range.high
        open_range = memory - low > self.gap * memory
        return not open_range or memory == self.range.bound or self.trials.ended

    def _tried(self, memory: float, best: bool = False) -> SizeTrial:
        words = f"{amount(memory)}B of memory for each device of kind {self.kind}"
        return self.trials.make(memory, with_memory(self.devices, self.kind, memory), words, best)

    def _keep(self, trial: SizeTrial) -> Plan:
        assert trial.plan is not None
        self.range.high = most_held(trial.plan.devices, self.kind)
        return trial.plan


def _size(memory: float) -> str:
    return "no limit" if math.isinf(memory) else f"{amount(memory)}B"
