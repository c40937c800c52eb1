"""Where each option has an effect: what has none is refused, or noted in the plan where that does no harm."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from partitioner.base.errors import OptionError, shown
from partitioner.evaluation.shape import is_contiguous
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import Objective
from partitioner.planning.options import DEFAULTS
from partitioner.workload.devices import Devices


class Requested(NamedTuple):
    """What a call asks for, as far as effects of options depend on it."""

    objective: Objective
    split: str
    method: str
    devices: Devices

    def __str__(self) -> str:
        return f"method {self.method}, objective {self.objective.name!r} and split {self.split!r}"


@dataclass(frozen=True)
class Effect:
    """Where an option has an effect.

    Parameters
    ----------
    where
        The same in words.
    holds
        Whether it has one on a call.
    refused
        Whether a call on which it has none is refused, since something is asked for that nobody does; else
        the plan has a note.
    """

    where: str
    holds: Callable[[Requested], bool]
    refused: bool = False


def _methods(*names: str, refused: bool = False) -> Effect:
    return Effect(f"method {', '.join(names)}", lambda requested: requested.method in names, refused)


PLACERS = tuple(info.name for info in METHODS.own.values() if info.places_operators)
PARTITIONERS = ("scotch", "metis")
BAECHI = ("m-topo", "m-etf", "m-sct", "portfolio")
FUSED = ("celeritas", "order-place", "portfolio")
OVER_IDEALS = (
    "dp",
    "dpl",
    "pipeline",
    "simulated",
    "pipedream_path",
    "ip",
    "max_load",
    "latency_ip",
    "latency_dp",
)
STARTED = (
    "dp",
    "dpl",
    "pipeline",
    "simulated",
    "ip",
    "local_search",
    "latency_ip",
    "latency_search",
    "portfolio",
)
CONVEX = Effect(
    "split 'convex'",
    lambda requested: is_contiguous(requested.split) and "subgraphs" not in requested.objective.terms,
    True,
)

EFFECTS = {
    "memory_budget": _methods(*OVER_IDEALS),
    "step_limit": _methods(*OVER_IDEALS),
    "orders": _methods(*OVER_IDEALS),
    "contiguous_cpus": CONVEX,
    "contiguous_backward": CONVEX,
    "replicas": Effect(
        "devices with several of a kind",
        lambda requested: any(kind.count > 1 for kind in requested.devices.kinds),
    ),
    "microbatches": Effect(
        "objective throughput, batch or makespan",
        lambda requested: "microbatches" in requested.objective.terms,
        True,
    ),
    "transfers": _methods(*PLACERS),
    "refine": _methods(*(name for name in PLACERS if name not in PARTITIONERS), refused=True),
    "reserve_memory": _methods(*(name for name in PLACERS if name not in (*PARTITIONERS, "m-topo"))),
    "grouper": _methods(*BAECHI, refused=True),
    "fuse": _methods(*BAECHI, refused=True),
    "uniform": _methods("m-topo", "portfolio"),
    "sct_threshold": _methods("m-sct", "portfolio"),
    "fusion_range": _methods(*FUSED),
    "fusion_memory": _methods(*FUSED),
    "imbalance": _methods(*PARTITIONERS, "portfolio"),
    "placer": _methods("list", refused=True),
    "warm_start": _methods(*STARTED),
}


def notes_on_options(given: Mapping[str, Any], requested: Requested) -> tuple[str, ...]:
    """Return a note for every option that was given and has no effect, which does no harm.

    Defaults that are given count as not given.

    Raises
    ------
    OptionError
        If an option has no effect that asks for something which the method does not do.

    Examples
    --------
    >>> from partitioner.planning.objectives import THROUGHPUT
    >>> requested = Requested(THROUGHPUT, "chain", "dp", Devices.accelerated(2))
    >>> notes_on_options({"refine": False, "sct_threshold": 0.5}, requested)[0][:38]
    'sct_threshold = 0.5 has no effect with'
    """
    words = {
        name: f"{name} = {shown(given[name])} has no effect with {requested}, only with {EFFECTS[name].where}"
        for name in given
        if not has_effect(name, given[name], requested)
    }
    for name in words:
        if EFFECTS[name].refused:
            raise OptionError(words[name])
    return tuple(words.values())


def known_options(given: Mapping[str, Any], requested: Requested) -> dict[str, Any]:
    """Return the options without those that a method of a comparison would be refused for."""
    return {name: value for name, value in given.items() if not _is_refused(name, value, requested)}


def check_options(given: Mapping[str, Any], runs: Sequence[Requested]) -> None:
    """Refuse options that every method of a comparison would be refused for.

    Raises
    ------
    OptionError
        Naming the option, its value and where it has an effect.
    """
    for name, value in given.items():
        if all(_is_refused(name, value, requested) for requested in runs):
            words = f"{name} = {shown(value)} has no effect on any method compared"
            raise OptionError(f"{words}, only with {EFFECTS[name].where}")


def has_effect(name: str, value: Any, requested: Requested) -> bool:
    """Whether an option changes what the call does, or has its default."""
    if name not in EFFECTS or _is_default(name, value):
        return True
    return EFFECTS[name].holds(requested) or name in METHODS[requested.method].options


def _is_refused(name: str, value: Any, requested: Requested) -> bool:
    return not has_effect(name, value, requested) and EFFECTS[name].refused


def _is_default(name: str, value: Any) -> bool:
    default = DEFAULTS.get(name)
    return value is default or (type(value) is type(default) and bool(value == default))
