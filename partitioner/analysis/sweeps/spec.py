"""What a sweep shall solve: the product of workloads, pools of devices and options, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from partitioner.analysis.sweeps.pool import DevicePool
from partitioner.analysis.sweeps.task import SweepTask
from partitioner.analysis.sweeps.workloads import SweptGraph
from partitioner.base.argument_types import require_mapping
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.planning.objectives import default_objective, objective_of
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.options import check_values, read_options
from partitioner.planning.request import plain

REFUSED = ("workers", "warm_start")  # a task has one core; nodes differ from workload to workload
CHECKED_ELSEWHERE = ("objective", "method", "split", "backend")  # by the check of values
OWN_DEVICES = (DevicePool(),)


@dataclass(frozen=True, eq=False)
class SweepSpec:
    """The product of workloads, pools and sets of options.

    Parameters
    ----------
    workloads
        The graphs.
    pools
        The pools of devices.
    options
        For each option of :func:`partitioner.solve` the values that it takes in turn.
    """

    workloads: tuple[SweptGraph, ...]
    pools: tuple[DevicePool, ...] = OWN_DEVICES
    options: Mapping[str, Sequence[Any]] | None = None

    def __repr__(self) -> str:
        counts = f"{len(self.workloads)} workloads, {len(self.pools)} pools"
        return f"<SweepSpec: {counts}, {len(self.sets_of_options())} sets of options>"

    def sets_of_options(self) -> list[dict[str, Any]]:
        """Return the sets of options, of which each has an objective."""
        varied = self.options or {}
        given = (dict(zip(varied, values, strict=True)) for values in product(*varied.values()))
        trains = all(each.graph.backward.any() for each in self.workloads)
        return [{"objective": _default_of(options, trains), **options} for options in given]

    def tasks(self) -> list[SweepTask]:
        """Return the tasks: for each workload all pools, for each pool all sets of options.

        Raises
        ------
        WorkloadError, OptionError
            If a pool does not suit a workload.
        """
        asked = self.sets_of_options()
        return [
            SweepTask(swept.name, pool.label, swept.content, swept.graph.digest, devices, options)
            for swept in self.workloads
            for pool in self.pools
            for devices in (swept.devices_of(pool),)
            for options in asked
        ]


def _default_of(options: Mapping[str, Any], trains: bool) -> str:
    """Return the objective where none is named, for graphs of which all have a backward pass or not."""
    return default_objective(options.get("method", "auto"), options.get("split"), options, trains)


def checked_options(given: object) -> dict[str, tuple[Any, ...]]:
    """Return the values of each option; a list or a tuple has several, any other value is the only one.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.

    Examples
    --------
    >>> checked_options({"objective": ["throughput", "gpipe"], "gap": 0.01})
    {'objective': ('throughput', 'gpipe'), 'gap': (0.01,)}
    """
    options = {} if given is None else given
    require_mapping("options", options, "must be a mapping of names of options to values")
    assert isinstance(options, Mapping)
    varied = {name: _values(name, value) for name, value in options.items()}
    for chosen in SweepSpec((), options=varied).sets_of_options():
        _check_together(chosen)
    return varied


def _values(name: object, value: object) -> tuple[Any, ...]:
    known = [each for each in OPTIONS if each not in REFUSED]
    if name not in known:
        raise OptionError(f"option {shown(name)} is unknown in a sweep: must be {one_of(name, known)}")
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise OptionError(f"{name} = {shown(value)}: must not be empty")
    for each in values:
        OPTIONS[str(name)].check(each)
    return values


def _check_together(options: Mapping[str, Any]) -> None:
    """Raise if options do not go together, before any of the tasks runs."""
    rest = {name: value for name, value in options.items() if name not in CHECKED_ELSEWHERE}
    check_values(**{name: value for name, value in options.items() if name in CHECKED_ELSEWHERE})
    time_limit, gap, seed = (rest.pop(name, OPTIONS[name].default) for name in ("time_limit", "gap", "seed"))
    objective = objective_of(options["objective"], options.get("method", "auto"), rest)
    read_options(objective, rest, time_limit=time_limit, gap=gap, seed=seed, workers=1)
    plain(options)
