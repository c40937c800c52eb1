"""The options of a call, checked."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.base.interruption import Interruption
from partitioner.methods.registry import METHODS, choose
from partitioner.planning.alternatives import can_choose
from partitioner.planning.objectives import Objective
from partitioner.planning.option_effects import notes_on_options
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.request import Request, fields_of
from partitioner.problem.layers import whole_layers
from partitioner.workload.devices import Devices
from partitioner.workload.in_flight import HOLD_A_BATCH
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from partitioner.workload.workload import Workload

CALLBACKS = ("on_progress", "stop")  # keywords of `solve` that are no options


def request_of(workload: Workload, objective: Objective, **keywords: Any) -> Request:
    """Return the request of a call of :func:`partitioner.solve` with these keywords.

    Raises
    ------
    OptionError
        If an option has a value it may not have, or is refused since it has no effect, or no method can do
        what is asked.
    BackendUnavailable
        If the method does not run on the backend.

    Examples
    --------
    >>> from partitioner.planning.objectives import THROUGHPUT
    >>> from partitioner.workload.graph import Graph
    >>> graph = Graph.from_arrays({"accelerator": [1.0, 2.0]}, [(0, 1)])
    >>> request = request_of(Workload(graph, Devices.accelerated(2)), THROUGHPUT, replicas=2)
    >>> request.split, request.info.name, request.regime.replicas
    ('chain', 'pipeline', 2)
    """
    seconds = keywords.get("time_limit")
    clock = Clock(math.inf if seconds is None else seconds)
    graph, devices, base = workload.graph, workload.devices, objective.base or objective
    given = {name: keywords.pop(name) for name in list(keywords) if not _is_parameter(name)}
    report, stop = keywords.pop("on_progress", None), keywords.pop("stop", None)
    values = _values(given, keywords)
    objective.check(graph, devices, values)
    _check_together(objective, values)
    split = split_for(base, values["split"], values["method"])
    check_transfer_factors(objective, devices)
    regime = Regime(**fields_of(Regime, values))
    features = regime.features(devices)
    automatic = objective.automatic(split, features, can_choose(graph, devices))
    info = choose(values["method"], objective.known_as, split, values["backend"], features, automatic)
    layer, notes = whole_layers(graph) if values["granularity"] == "layer" else (None, ())
    request = Request(
        workload,
        objective,
        split,
        info,
        values,
        layer,
        given=given,
        clock=clock,
        interruption=Interruption(stop),
        report=report,
    )
    without_effect = notes_on_options({**given, "warm_start": values["warm_start"]}, request)
    return replace(request, notes=(*notes, *without_effect))


def _is_parameter(name: str) -> bool:
    """Whether a keyword is a parameter of :func:`partitioner.solve` of its own."""
    return name in CALLBACKS or (name in OPTIONS and OPTIONS[name].keyword)


def default_options() -> dict[str, Any]:
    """Return the defaults of the ``**method_options`` of :func:`partitioner.solve`.

    Examples
    --------
    >>> default_options()["granularity"]
    'operator'
    """
    return {name: option.default for name, option in OPTIONS.items() if not option.keyword}


def read_options(objective: Objective, given: Mapping[str, Any], **keywords: Any) -> dict[str, Any]:
    """Return the value of every option: those given, and the others by their defaults, all of them checked.

    Parameters
    ----------
    objective
        The objective, which may need some of them.
    given
        Further options of :func:`partitioner.solve` by name.
    **keywords
        Options that are parameters of it of their own.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.
    """
    values = _values(given, keywords)
    _check_together(objective, values)
    return values


def _values(given: Mapping[str, Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every option, each checked by its own rule."""
    known = default_options()
    for name in given:
        if name not in known:
            raise OptionError(f"option {name!r} is unknown: must be {one_of(name, known)}")
    values = {name: option.default for name, option in OPTIONS.items()} | dict(keywords) | dict(given)
    check_values(**values)
    return values


def _check_together(objective: Objective, values: Mapping[str, Any]) -> None:
    """Refuse values of options that mean nothing together, or without one that is not given."""
    _check_batch(objective, values["schedule"], values["microbatches"])
    for name in objective.needs:
        if values.get(name, name) is None:
            raise OptionError(f"objective {objective.name!r} needs {name}")
    _check_virtual_stages(values["schedule"], values["virtual_stages"], values["replicas"])
    if values["replicas"] > 1 and values["constraints"].no_replicas:
        raise OptionError(f"replicas = {values['replicas']}: must be 1, the constraints say no_replicas")


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
