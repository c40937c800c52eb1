"""The options of a call, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partitioner.errors import OptionError, shown
from partitioner.methods.method import Settings

LONGEST = 10**9
GRANULARITIES = ("operator", "layer")
DEFAULTS = {
    "granularity": "operator",
    "memory_budget": Settings.memory_budget,
    "step_limit": Settings.step_limit,
    "orders": Settings.orders,
    "contiguous_cpus": True,
    "contiguous_backward": False,
    "subgraphs_per_accelerator": 1,
}
SPLITS = {"latency": "convex"}


@dataclass(frozen=True)
class Options:
    """Method options with their defaults filled in, see :func:`partitioner.solve`."""

    by_layer: bool
    memory_budget: int
    step_limit: int
    orders: int
    contiguous_cpus: bool
    contiguous_backward: bool
    subgraphs_per_accelerator: int


def read_options(
    objective: str,
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
    _require("workers", workers, "an integer of at least 1", lambda v: v is None or _is_whole(v, 1))
    unknown = [name for name in method_options if name not in DEFAULTS]
    if unknown:
        raise OptionError(f"option {unknown[0]!r} is unknown; known are {', '.join(DEFAULTS)}")
    given = {**DEFAULTS, **method_options}
    granularities = " or ".join(GRANULARITIES)
    _require("granularity", given["granularity"], granularities, lambda value: value in GRANULARITIES)
    for name in ("memory_budget", "step_limit", "orders", "subgraphs_per_accelerator"):
        _require(name, given[name], "an integer of at least 1", lambda value: _is_whole(value, 1))
    limit = given["subgraphs_per_accelerator"]
    _require(
        "subgraphs_per_accelerator", limit, "1 except for latency", lambda v: v == 1 or objective in SPLITS
    )
    for name in ("contiguous_cpus", "contiguous_backward"):
        _require(name, given[name], "True or False", lambda value: isinstance(value, bool))
    return Options(by_layer=given.pop("granularity") == "layer", **given)


def split_for(objective: str, split: str | None) -> str:
    """The split asked for, by default chains, and for latency convex subgraphs."""
    return SPLITS.get(objective, "chain") if split is None else split


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
