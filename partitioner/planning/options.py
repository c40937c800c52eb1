"""The options of a call, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.methods.placing import Placing
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import Objective
from partitioner.planning.option_records.table import OPTIONS
from partitioner.workload.devices import Devices
from partitioner.workload.in_flight import HOLD_A_BATCH
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.virtual_stages.schedules import VIRTUAL


@dataclass(frozen=True)
class Options:
    """The options of a call with their defaults filled in, see :func:`partitioner.solve`.

    Parameters
    ----------
    values
        The value of every option that :func:`read_options` checks, by name.
    """

    values: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    @property
    def by_layer(self) -> bool:
        """Whether the nodes of a layer stay together."""
        return bool(self["granularity"] == "layer")

    @property
    def regime(self) -> Regime:
        """The options of pipelines."""
        return Regime(**self.fields_of(Regime))

    @property
    def placing(self) -> Placing:
        """The options of methods that place operators one by one."""
        return Placing(**self.fields_of(Placing))

    def fields_of(self, kind: type) -> dict[str, Any]:
        """Return the values of those options that are fields of a dataclass."""
        return {field.name: self[field.name] for field in fields(kind) if field.name in self.values}


def default_options() -> dict[str, Any]:
    """Return the defaults of the ``**method_options`` of :func:`partitioner.solve`.

    Examples
    --------
    >>> default_options()["granularity"]
    'operator'
    """
    return {name: option.default for name, option in OPTIONS.items() if not option.keyword}


def read_options(
    objective: Objective,
    time_limit: float | None,
    gap: float,
    seed: int,
    workers: int | None,
    method_options: Mapping[str, Any],
) -> Options:
    """Check all options of a call.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.
    """
    known = default_options()
    for name in method_options:
        if name not in known:
            raise OptionError(f"option {name!r} is unknown: must be {one_of(name, known)}")
    values = known | {
        "time_limit": time_limit,
        "gap": gap,
        "seed": seed,
        "workers": workers,
        **method_options,
    }
    check_values(**values)
    _check_batch(objective, values["schedule"], values["microbatches"])
    _check_virtual_stages(values["schedule"], values["virtual_stages"], values["replicas"])
    if values["replicas"] > 1 and values["constraints"].no_replicas:
        raise OptionError(f"replicas = {values['replicas']}: must be 1, the constraints say no_replicas")
    return Options(values)


def check_values(**given: object) -> None:
    """Refuse values that options may not have.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.

    Examples
    --------
    >>> check_values(split="strip")
    Traceback (most recent call last):
    ...
    partitioner.base.errors.OptionError: split = 'strip': must be one of chain, convex, free
    """
    for name, value in given.items():
        OPTIONS[name].check(value)


def cores_for(workers: int | None) -> tuple[int, tuple[str, ...]]:
    """Return how many cores a run takes, and a note if that is fewer than asked for.

    Examples
    --------
    >>> cores_for(1)
    (1, ())
    """
    present = os.cpu_count() or 1
    if workers is None or workers <= present:
        return workers or present, ()
    return present, (f"workers = {workers:,}: only {present} are used, as many as the machine has cores",)


def check_transfer_factors(objective: Objective, devices: Devices) -> None:
    """Refuse transfer factors if the objective does not use them.

    Raises
    ------
    OptionError
        Naming the kind.
    """
    for kind in () if "transfer_factor" in objective.terms else devices.kinds:
        if kind.transfer_factor != 1:
            words = f"transfer_factor of device kind {kind.name} = {shown(kind.transfer_factor)}"
            raise OptionError(f"{words}: must be 1 for {objective.name}")


def split_for(objective: Objective, split: str | None, method: str = "auto") -> str:
    """Return the split to make: the one given, else the objective's default if the method can make it.

    A method that cannot makes the first of its splits for that objective.
    """
    if split is not None:
        return split
    default, info = objective.splits[0], METHODS.get(method)
    able = (default,) if info is None else info.splits_for(objective.name)
    return default if default in able else able[0]


def _check_batch(objective: Objective, schedule: str | None, microbatches: int | None) -> None:
    """Refuse an objective or a schedule that needs `microbatches` if it is not given."""
    needed = {
        f"objective {objective.name!r}": "microbatches" in objective.needs,
        f"schedule {schedule!r}": schedule in (*HOLD_A_BATCH, *VIRTUAL),
    }
    for words in (words for words, asking in needed.items() if asking and microbatches is None):
        raise OptionError(f"{words} needs microbatches, the number of samples in a batch")


def _check_virtual_stages(schedule: str | None, virtual_stages: int | None, replicas: int) -> None:
    """Refuse a number of stages of each device that the schedule does not have, and replicas of these."""
    if schedule in VIRTUAL:
        VIRTUAL[schedule].chunks_for(virtual_stages)
        if replicas > 1:
            raise OptionError(f"replicas = {replicas}: must be 1 for schedule {schedule!r}")
    elif virtual_stages not in (None, 1):
        names = ", ".join(VIRTUAL)
        raise OptionError(
            f"virtual_stages = {virtual_stages}: must be None unless schedule is one of {names}"
        )
