"""The methods by name; a method's module is imported when the method is called."""

from __future__ import annotations

from collections.abc import Sequence

from partitioner.base.errors import BackendUnavailable, OptionError, nearest, shown
from partitioner.base.registry import Registry
from partitioner.methods.catalogue import PLACERS, PLANNERS
from partitioner.methods.info import MethodInfo
from partitioner.methods.solvers.backends.catalogue import BACKENDS

FEATURES = {
    "replicas": "replicas",
    "equal replicas": "equal numbers of replicas",
    "exchange latency": "latencies in exchanges of weights",
    "levels": "levels of devices",
    "groups": "groups of devices with links of their own",
    "schedule": "schedules",
    "virtual stages": "schedules with several stages on a device",
    "alternatives": "alternatives of nodes",
    "limits": "limits on stages and pins to a device",
}
METHODS = Registry("method", "partitioner.methods", MethodInfo, (*PLANNERS, *PLACERS), reserved=("auto",))


def choose(
    method: str,
    objective: str,
    split: str,
    backend: str = "auto",
    features: Sequence[str] = (),
    automatic: str = "",
) -> MethodInfo:
    """Return the method of that name, or for ``"auto"`` the one that the objective takes.

    Parameters
    ----------
    method, objective, split, backend
        As in :func:`partitioner.solve`.
    features
        What the method must take account of: keys of :data:`FEATURES`.
    automatic
        The method for ``"auto"``.

    Raises
    ------
    OptionError
        If there is no such method, or it lacks the objective, the split or a feature.
    BackendUnavailable
        If the method does not run on the backend.
    """
    name = automatic if method == "auto" else method
    METHODS.check("method", name, *(() if method == "auto" else ("auto",)))
    info = METHODS[name]
    if method == "auto":
        _check_auto(info, objective, split, features)
    for wanted, offered, word in (
        (objective, info.objectives, "objective"),
        (split, info.splits_for(objective), "split"),
    ):
        if wanted not in offered:
            known = ", ".join(offered)
            where = f"{name} for {objective}" if word == "split" and offered != info.splits else name
            raise OptionError(f"{word} {wanted!r} is not available with method {where}, only {known}")
    for feature in features:
        if not info.knows(feature, objective):
            able = ", ".join(other.name for other in METHODS.values() if feature in other.features)
            raise OptionError(f"{FEATURES[feature]} mean nothing to method {name}, only to {able}")
    for feature in info.needs:
        if feature not in features:
            raise OptionError(f"method {name} is for {FEATURES[feature]} alone, and none is asked for")
    if backend != "auto" and backend not in (offered := backends_of(info)):
        broken = BACKENDS.why_broken(backend)
        if broken:
            raise BackendUnavailable(f"backend = {shown(backend)}: {broken}")
        known = ", ".join(offered)
        meant = nearest(backend, offered)
        raise BackendUnavailable(f"method {name} does not run on {shown(backend)}, only on {known}{meant}")
    return info


def backends_of(info: MethodInfo) -> tuple[str, ...]:
    """Return the backends of a method; a method with solvers of this package also takes registered ones."""
    if BACKENDS.own.keys().isdisjoint(info.backends):
        return info.backends
    return (*info.backends, *(name for name in BACKENDS if name not in BACKENDS.own))


def _check_auto(info: MethodInfo, objective: str, split: str, features: Sequence[str]) -> None:
    """Raise an error that names the user's options if the method that ``"auto"`` takes cannot do them."""
    known = objective in info.objectives
    for feature in features:
        if not known or not info.knows(feature, objective):
            pair = f"objective {objective!r} with split {split!r}"
            raise OptionError(f"{FEATURES[feature]} mean nothing for {pair}, only for {_where(feature)}")
    if split not in info.splits_for(objective):
        offered = ", ".join(info.splits_for(objective))
        able = [other.name for other in METHODS.values() if _makes(other, objective, split)]
        rest = f"; such a split is made by method {', '.join(able)}" if able else ""
        words = f"split {split!r} is not available for objective {objective!r} with method auto"
        raise OptionError(f"{words}, only {offered}{rest}")


def _makes(info: MethodInfo, objective: str, split: str) -> bool:
    return objective in info.objectives and split in info.splits_for(objective)


def _where(feature: str) -> str:
    """Return the objectives and splits for which some method takes account of the feature."""
    found: dict[str, list[str]] = {}
    for info in METHODS.values():
        for objective in info.objectives if feature in info.features else ():
            for split in info.splits_for(objective) if info.knows(feature, objective) else ():
                found.setdefault(split, []).append(objective)
    return "; ".join(f"{', '.join(dict.fromkeys(able))} with split {split}" for split, able in found.items())
