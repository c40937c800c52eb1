"""The options of a call, checked."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from partitioner.base.argument_types import MANY, check_word, is_count, is_one_of
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.evaluation.shape import SHAPES
from partitioner.methods.method import Settings
from partitioner.methods.placing import GROUPERS, Placer, Placing
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import Objective
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.devices import MAX_COUNT, Devices
from partitioner.workload.in_flight import HOLD_A_BATCH, SCHEDULES
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.transfers import Transfers

LONGEST = 10**9
MOST_WORKERS = 1024
COUNT = f"an integer of at least 1 and at most {MANY:,}"
MOST = {"orders": 10**6, "replicas": MAX_COUNT}  # of others MANY
GRANULARITIES = ("operator", "layer")
DEFAULTS = {
    "granularity": "operator",
    "memory_budget": Settings.memory_budget,
    "step_limit": Settings.step_limit,
    "orders": Settings.orders,
    "contiguous_cpus": True,
    "contiguous_backward": False,
    "deterministic": False,
    "subgraphs_per_accelerator": 1,
    "replicas": 1,
    "schedule": None,
    "microbatches": None,
    "constraints": NONE,
    **{field.name: field.default for field in fields(Placing)},
}
PLACING = tuple(field.name for field in fields(Placing))
REGIME = ("replicas", "schedule", "microbatches", "constraints")


@dataclass(frozen=True)
class Options:
    """Method options with their defaults filled in, see :func:`partitioner.solve`."""

    by_layer: bool
    memory_budget: int
    step_limit: int
    orders: int
    contiguous_cpus: bool
    contiguous_backward: bool
    deterministic: bool
    subgraphs_per_accelerator: int
    regime: Regime
    placing: Placing


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
    _require("time_limit", time_limit, f"a positive number of seconds, at most {LONGEST:,}", _is_limit)
    _require("gap", gap, "a fraction from 0 to less than 1", _is_fraction)
    _require("seed", seed, "an integer of at least 0", lambda value: _is_whole(value, 0))
    rule = f"an integer of at least 1 and at most {MOST_WORKERS:,}"
    _require("workers", workers, rule, lambda v: v is None or is_count(v, 1, MOST_WORKERS))
    unknown = [name for name in method_options if name not in DEFAULTS]
    if unknown:
        raise OptionError(f"option {unknown[0]!r} is unknown: must be {one_of(unknown[0], DEFAULTS)}")
    given = {**DEFAULTS, **method_options}
    check_word("granularity", given["granularity"], GRANULARITIES)
    for name in ("memory_budget", "step_limit", "orders", "subgraphs_per_accelerator", "replicas"):
        most = MOST.get(name, MANY)
        _require(
            name,
            given[name],
            f"an integer of at least 1 and at most {most:,}",
            lambda v, most=most: is_count(v, 1, most),
        )
    limit = given["subgraphs_per_accelerator"]
    rule = f"1 for objective {objective.name!r}, which knows no subgraphs"
    known = "subgraphs_per_accelerator" in objective.terms
    _require("subgraphs_per_accelerator", limit, rule, lambda v: v == 1 or known)
    for name in ("contiguous_cpus", "contiguous_backward", "deterministic"):
        _require(name, given[name], "True or False", lambda value: isinstance(value, bool))
    regime = _regime(objective, {name: given.pop(name) for name in REGIME})
    placing = _placing({name: given.pop(name) for name in PLACING})
    return Options(by_layer=given.pop("granularity") == "layer", regime=regime, placing=placing, **given)


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


def _placing(given: Mapping[str, Any]) -> Placing:
    for name in ("refine", "reserve_memory", "fuse", "uniform"):
        _require(name, given[name], "True or False", lambda value: isinstance(value, bool))
    for name, wanted in (("transfers", Transfers), ("placer", Placer)):
        _require(
            name, given[name], f"a {wanted.__name__}", lambda value, kind=wanted: isinstance(value, kind)
        )
    check_word("grouper", given["grouper"], GROUPERS)
    _require(
        "sct_threshold",
        given["sct_threshold"],
        "a number from 0 to 1",
        lambda v: _is_number(v) and 0 <= v <= 1,
    )
    _require("fusion_range", given["fusion_range"], COUNT, is_count)
    for name in ("fusion_memory", "imbalance"):
        _require(name, given[name], "a positive number", lambda v: _is_number(v) and 0 < v <= LONGEST)
    return Placing(**given)


def _regime(objective: Objective, given: Mapping[str, Any]) -> Regime:
    schedule = given["schedule"]
    rule = f"None or {one_of(schedule, SCHEDULES)}"
    _require("schedule", schedule, rule, lambda v: is_one_of(v, (None, *SCHEDULES)))
    _require(
        "constraints", given["constraints"], "a Constraints", lambda value: isinstance(value, Constraints)
    )
    batch = given["microbatches"]
    _require(
        "microbatches",
        batch,
        f"an integer of at least 1 and at most {MANY:,}",
        lambda v: v is None or is_count(v),
    )
    needed = {
        f"objective {objective.name!r}": "microbatches" in objective.needs,
        f"schedule {schedule!r}": schedule in HOLD_A_BATCH,
    }
    for words in (words for words, asking in needed.items() if asking and batch is None):
        raise OptionError(f"{words} needs microbatches, the number of samples in a batch")
    return Regime(**given)


def check_transfer_factors(objective: Objective, devices: Devices) -> None:
    """Refuse factors of transfers where the objective knows none.

    Raises
    ------
    OptionError
        Naming the kind.
    """
    for kind in () if "transfer_factor" in objective.terms else devices.kinds:
        _require(
            f"transfer_factor of device kind {kind.name}",
            kind.transfer_factor,
            f"1 for {objective.name}",
            lambda v: v == 1,
        )


def check_words(split: object, method: object) -> None:
    """Refuse a split or a method that does not exist.

    Raises
    ------
    OptionError
        Naming the option, its value, the known words and the nearest of them.
    """
    METHODS.check("method", method, "auto")
    if split is not None:
        check_word("split", split, SHAPES)


def split_for(objective: Objective, split: str | None, method: str = "auto") -> str:
    """Return the split to make: the one given, else the objective's default if the method can make it.

    A method that cannot makes the first of its splits for that objective.
    """
    if split is not None:
        return split
    default, info = objective.splits[0], METHODS.get(method)
    able = (default,) if info is None else info.splits_for(objective.name)
    return default if default in able else able[0]


def _require(name: str, value: object, rule: str, holds: Any) -> None:
    if not holds(value):
        raise OptionError(f"{name} = {shown(value)}: must be {rule}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_limit(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 < value <= LONGEST)


def _is_fraction(value: Any) -> bool:
    return _is_number(value) and 0 <= value < 1


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
