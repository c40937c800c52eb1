"""The methods by name; their modules load when they are called."""

from __future__ import annotations

from collections.abc import Sequence

from partitioner.errors import BackendUnavailable, OptionError
from partitioner.methods.catalogue import PLACERS, PLANNERS
from partitioner.methods.info import MethodInfo

ALL = (*PLANNERS, *PLACERS)
FEATURES = {
    "replicas": "replicas",
    "levels": "levels of devices",
    "schedule": "schedules",
    "limits": "limits on stages and pins to a device",
}
METHODS = {info.name: info for info in ALL}
EXACT = {
    "throughput": "ip",
    "gpipe": "ip",
    "latency": "latency_ip",
    "batch": "pipeline",
    "makespan": "portfolio",
}
FOR_CHAINS = {"throughput": "dp"}


def choose(
    method: str, objective: str, split: str, backend: str = "auto", features: Sequence[str] = ()
) -> MethodInfo:
    """The method of that name, or for ``"auto"`` the best one that can do what is asked.

    Raises
    ------
    OptionError
        If there is no such method, or it cannot do what is asked.
    BackendUnavailable
        If the method does not run on the backend.
    """
    name = _strongest(objective, split, features) if method == "auto" else method
    if not isinstance(name, str) or name not in METHODS:
        raise OptionError(f"method {method!r} is unknown; choose from auto, {', '.join(METHODS)}")
    info = METHODS[name]
    chosen = f"; auto takes it for {_reasons(objective, split, features)}" if method == "auto" else ""
    for wanted, offered, word in (
        (objective, info.objectives, "objective"),
        (split, info.splits_for(objective), "split"),
    ):
        if wanted not in offered:
            known = ", ".join(offered)
            where = f"{name} for {objective}" if word == "split" and offered != info.splits else name
            raise OptionError(f"{word} {wanted!r} is not available with method {where}, only {known}{chosen}")
    for feature in features:
        if feature not in info.features or (info.places_operators and objective != "makespan"):
            able = ", ".join(other.name for other in ALL if feature in other.features)
            raise OptionError(f"{FEATURES[feature]} mean nothing to method {name}, only to {able}{chosen}")
    if backend not in ("auto", *info.backends):
        known = ", ".join(info.backends)
        raise BackendUnavailable(f"method {name} does not run on {backend!r}, only on {known}")
    return info


def _strongest(objective: str, split: str, features: Sequence[str]) -> str:
    """The method with the strongest guarantee."""
    if _extended(objective, split, features):
        return "pipeline"
    exact = EXACT.get(objective, "ip")
    return FOR_CHAINS.get(objective, exact) if split == "chain" else exact


def _extended(objective: str, split: str, features: Sequence[str]) -> bool:
    return split == "chain" and bool(features) and objective != "makespan"


def _reasons(objective: str, split: str, features: Sequence[str]) -> str:
    """What decides which method is the strongest, in words."""
    if _extended(objective, split, features):
        return ", ".join(FEATURES[feature] for feature in features)
    return f"objective {objective!r} and split {split!r}"
