"""The fewest devices on which a plan is within a limit of the time per sample, by halving their number."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx

from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError
from partitioner.base.interruption import StopEvent
from partitioner.methods.halving import Halving
from partitioner.methods.method import Progress
from partitioner.planning.sizing.pool import kind_in_question, with_count
from partitioner.planning.sizing.trial import SizeTarget, SizeTrial, SizeTrials, trials_of
from partitioner.planning.sizing.words import found_lines, within
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph


@dataclass(frozen=True, eq=False)
class FewestDevices:
    """The fewest devices of a kind with a plan within a limit of the time per sample.

    Parameters
    ----------
    kind
        The kind of device that is counted.
    count
        The least number of them for which a plan was found.
    bound
        No smaller number than this suffices; the search is proven if it equals `count`.
    max_time_per_sample
        The limit, in the unit of the graph's times; None if any plan will do.
    plan
        The plan on `count` devices.
    trials
        The numbers that were tried, with value and bound of each.
    seconds
        How long the search took.
    """

    kind: str
    count: int
    bound: int
    max_time_per_sample: float | None
    plan: Plan
    trials: tuple[SizeTrial, ...]
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether no fewer devices suffice."""
        return self.bound == self.count

    def __repr__(self) -> str:
        return f"<FewestDevices: {self.count} of {self.kind}, at least {self.bound}, {self.plan!r}>"

    def summary(self, width: int | None = None) -> str:
        """Return number, proof, trials and plan as text of at most `width` columns."""
        limit = within(self.max_time_per_sample, self.plan.time_unit)
        one = "" if self.count == 1 else "s"
        proof = "fewer are proven not to suffice" if self.proven else f"at least {self.bound} are needed"
        head = f"{self.count} device{one} of kind {self.kind} suffice{'s' if not one else ''}{limit}; {proof}"
        sizes = [f"{trial.size:.0f} device{'s' if trial.size != 1 else ''}" for trial in self.trials]
        return found_lines(head, sizes, self.trials, self.plan, width)

    def to_json(self) -> str:
        """Return the number, its bound, the trials and the plan as one JSON object."""
        record = {name: getattr(self, name) for name in ("kind", "count", "bound", "max_time_per_sample")}
        record |= {"seconds": self.seconds, "trials": [trial.as_dict() for trial in self.trials]}
        return json.dumps(record | {"plan": json.loads(self.plan.to_json())}, indent=1)


def fewest_devices(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    max_time_per_sample: float | None = None,
    objective: str | None = None,
    *,
    kind: str | None = None,
    tokens_per_second: float | None = None,
    batch_seconds: float | None = None,
    time_limit: float | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
    **options: Any,
) -> FewestDevices:
    """Find the fewest devices of a kind with which a plan takes at most a given time per sample.

    A plan may leave devices unused. Therefore the least value of a plan never rises with the number of
    devices, and the search halves the numbers between one that is proven too small and one that suffices.

    Parameters
    ----------
    graph
        As for :func:`partitioner.solve`.
    devices
        The pool. It has as many devices of the kind in question as may be used at most; the devices of other
        kinds are all there in every trial.
    max_time_per_sample
        The largest value of the objective that a plan may have, in the unit of the graph's times; None if
        any plan will do, so that only memory and constraints count.
    objective
        As for :func:`partitioner.solve`, but not ``"capacity"``; None for throughput, or for the makespan
        where `batch_seconds` is given.
    tokens_per_second, batch_seconds
        In place of `max_time_per_sample`: the tokens that pass in a second, where the graph says those of a
        sample, or the seconds of a batch.
    kind
        The kind of device to count; None for the only one that pays for transfers.
    time_limit
        Seconds for the whole search, of which each trial takes at most half of what is left; None for no
        limit. What a trial leaves open leaves `bound` below `count`.
    on_progress, stop
        As for :func:`partitioner.solve`.
    **options
        Further options of :func:`partitioner.solve`, such as ``split``, ``replicas`` or ``constraints``.

    Returns
    -------
    FewestDevices
        The number, a lower bound for it, and the plan.

    Raises
    ------
    WorkloadError
        If the graph and the devices do not fit together.
    OptionError
        If an option has a value that it may not have, or the devices are in levels or groups.
    InfeasibleError
        If it is proven that all devices together do not suffice.
    NoPlanFound
        If no plan within the limit was found on all devices.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> found = fewest_devices(graph, Devices.accelerated(8), 4.0)
    >>> found.count, found.bound, found.plan.value
    (2, 2, 3.5)
    """
    started = time.perf_counter()
    require_type("devices", devices, Devices)
    counted = kind_in_question(devices, kind)
    _refuse_all_devices(options.get("constraints"))
    limits: dict[str, Any] = {"time_limit": time_limit, "on_progress": on_progress, "stop": stop}
    target = SizeTarget(objective, max_time_per_sample, tokens_per_second, batch_seconds)
    trials = trials_of(graph, devices, target, options=options, **limits)
    with trials.interruption:
        best, most = _halved(trials, devices, counted.name, counted.count)
    assert best.plan is not None
    return FewestDevices(
        kind=counted.name,
        count=int(best.size),
        bound=most + 1,
        max_time_per_sample=trials.longest,
        plan=best.plan,
        trials=tuple(trials.made),
        seconds=time.perf_counter() - started,
    )


def _halved(trials: SizeTrials, devices: Devices, kind: str, count: int) -> tuple[SizeTrial, int]:
    """Return the trial of the least number that suffices, and the largest number that is proven too small.

    Numbers up to one that is left open are not tried again.
    """

    def tried(number: int, best: bool = False) -> SizeTrial:
        words = f"{number} device{'s' if number != 1 else ''} of kind {kind}"
        return trials.make(number, with_count(devices, kind, number), words, best)

    with_count(devices, kind, count)  # refuses levels and groups
    best = trials.first(count, devices, f"{count} devices of kind {kind}")
    numbers = Halving(_least_number(devices, kind) - 1, count)
    for number in numbers.whole_numbers(lambda: trials.ended):
        trial = tried(number)
        numbers.settle(number, trial.suffices, trial.excluded)
        best = trial if trial.suffices else best
    if math.isinf(trials.limit):
        last = tried(int(best.size), best=True)
        best = last if last.suffices else best
    return best, int(numbers.bound)


def _least_number(devices: Devices, kind: str) -> int:
    """Return the least number of devices of a kind in a pool: 0 if there are devices of other kinds."""
    return 0 if any(other.count for other in devices.kinds if other.name != kind) else 1


def _refuse_all_devices(constraints: Any) -> None:
    if getattr(constraints, "use_all_devices", False):
        rule = "must be False where the fewest devices are looked for"
        raise OptionError(f"constraints: use_all_devices = True: {rule}")
