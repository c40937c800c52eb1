"""The runs of a comparison: a method on a split, and its result."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partitioner.base.argument_types import require_items
from partitioner.base.errors import (
    BackendUnavailable,
    ContradictionError,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    PartitionerError,
    nearest,
    shown,
)
from partitioner.evaluation.loads import DeviceLoad
from partitioner.evaluation.shape import SHAPES, is_ordered
from partitioner.methods.catalogue import USERS_OWN
from partitioner.methods.info import MethodInfo
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import Objective
from partitioner.planning.options import split_for
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph

INFEASIBLE, NO_PLAN, CANNOT_RUN, BUG, NOT_RUN = "infeasible", "no plan", "cannot run", "bug", "not run"
AGAINST = {
    InfeasibleError: INFEASIBLE,
    NoPlanFound: NO_PLAN,
    ContradictionError: BUG,
    BackendUnavailable: CANNOT_RUN,
    OptionError: CANNOT_RUN,
}


@dataclass(frozen=True, eq=False)
class Compared:
    """The result of one method on one split.

    Parameters
    ----------
    method, split
        What was asked for.
    plan
        What it found; None if there is nothing.
    seconds
        Wall time, loading and compiling included.
    against
        Why there is no plan: ``"infeasible"``, ``"no plan"``, ``"cannot run"`` (no backend, or not made for
        it), ``"bug"`` (the evaluator contradicts the method) or ``"not run"``; empty if there is one.
    reason
        The same in words.
    """

    method: str
    split: str
    plan: Plan | None
    seconds: float
    against: str = ""
    reason: str = ""

    @property
    def value(self) -> float:
        """The objective of the plan; infinity without one."""
        return math.inf if self.plan is None else self.plan.value

    @property
    def fullest(self) -> DeviceLoad | None:
        """The device that is nearest to its memory limit; without limits, the one that holds most."""
        if self.plan is None:
            return None
        return max(self.plan.devices, key=lambda load: (_share(load), load.memory))


def runs_of(
    objective: Objective, split: str | None, methods: Sequence[str] | None, features: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """Return the methods to run, each with a split; named methods are included even if they cannot run.

    The placer made of the user's own parts is run if it is named or if `features`, what is asked for, has
    ``"placer"``; a method that needs a feature, if it is named or the feature is asked for.
    """
    if methods is not None:
        methods = require_items("methods", methods)
    for name in () if methods is None else methods:
        METHODS.check("method", name)
    if methods is not None and not methods:
        raise OptionError(f"no method is named; choose from {', '.join(METHODS)}")
    needs = {
        name: set(info.needs) | ({"placer"} if name == USERS_OWN else set()) for name, info in METHODS.items()
    }
    usual = [name for name in METHODS if needs[name] <= set(features)]
    wanted = usual if methods is None else dict.fromkeys(methods)
    named = methods is not None
    runs = [(name, shape) for name in wanted for shape in _splits(METHODS[name], objective, split, named)]
    if not runs:
        raise OptionError(f"no method makes {split} splits for objective {objective.name!r}")
    return runs


def backends_of(methods: Sequence[str], backend: str) -> dict[str, str]:
    """Return the backend of each method: the one asked for if it runs on that, else ``"auto"``.

    Raises
    ------
    BackendUnavailable
        If none of the methods runs on it.
    """
    found = {name: backend if backend in METHODS[name].backends else "auto" for name in methods}
    if backend != "auto" and backend not in found.values():
        known = list(dict.fromkeys(each for name in methods for each in METHODS[name].backends))
        words = f"no method compared runs on it, only on {', '.join(known)}{nearest(backend, known)}"
        raise BackendUnavailable(f"backend = {shown(backend)}: {words}")
    return found


def _splits(info: MethodInfo, objective: Objective, split: str | None, named: bool) -> tuple[str, ...]:
    """Return the splits on which to run a method; none if it cannot do what is asked and was not named."""
    asked = split or (objective.splits[0] if len(objective.splits) == 1 else None)
    able = info.splits_for(objective.known_as)
    known = [shape for shape in SHAPES if shape in able and asked in (None, shape)]
    if objective.known_as not in info.objectives or not known:
        return (split_for(objective, split),) if named else ()
    if is_ordered(known[0]):
        return (known[0],)
    return (known[-1],) if info.places_operators else tuple(known)


def run_method(
    graph: Graph, devices: Devices, objective: str, name: str, split: str, options: Mapping[str, Any]
) -> Compared:
    """Run one method and return its result; a refusal is a result, too."""
    started = time.perf_counter()
    plan, against, reason = None, "", ""
    try:
        plan = solve(graph, devices, objective, method=name, split=split, **options)
    except KeyboardInterrupt:
        against, reason = NOT_RUN, "interrupted before there was a plan"
    except PartitionerError as error:
        against, reason = AGAINST.get(type(error), CANNOT_RUN), str(error)
    return Compared(name, split, plan, time.perf_counter() - started, against, reason)


def _share(load: DeviceLoad) -> float:
    """Return the fraction of its memory limit that a device holds; 0 without a limit."""
    if load.memory_limit is None:
        return 0.0
    return load.memory / load.memory_limit if load.memory_limit else float(load.memory > 0)
