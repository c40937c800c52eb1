"""Options that have no effect on a call: refused, or noted in the plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitioner.base.errors import OptionError, shown
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.request import Request


def notes_on_options(given: Mapping[str, Any], request: Request) -> tuple[str, ...]:
    """Return a note for every option that was given and has no effect, and need not be refused.

    Defaults that are given count as not given.

    Raises
    ------
    OptionError
        If an option has no effect that asks for something which the method does not do.

    Examples
    --------
    >>> from partitioner.methods.registry import METHODS
    >>> from partitioner.planning.objectives import THROUGHPUT
    >>> from partitioner.workload.devices import Devices
    >>> from partitioner.workload.graph import Graph
    >>> from partitioner.workload.workload import Workload
    >>> workload = Workload(Graph.from_arrays({"accelerator": [1.0]}), Devices.accelerated(2))
    >>> request = Request(workload, THROUGHPUT, "chain", METHODS["dp"])
    >>> notes_on_options({"refine": False, "sct_threshold": 0.5}, request)[0][:38]
    'sct_threshold = 0.5 has no effect with'
    """
    notes = []
    for name, value in given.items():
        if not has_effect(name, value, request):
            words = f"{name} = {shown(value)} has no effect with {request}{_only_with(name)}"
            if _is_refused(name, value, request):
                raise OptionError(words)
            notes.append(words)
    return tuple(notes)


def known_options(given: Mapping[str, Any], request: Request) -> dict[str, Any]:
    """Return the options without those that a method of a comparison would be refused for."""
    return {name: value for name, value in given.items() if not _is_refused(name, value, request)}


def check_options(given: Mapping[str, Any], runs: Sequence[Request]) -> None:
    """Refuse options that every method of a comparison would be refused for.

    Raises
    ------
    OptionError
        Naming the option, its value and where it has an effect.
    """
    for name, value in given.items():
        if all(_is_refused(name, value, request) for request in runs):
            words = f"{name} = {shown(value)} has no effect on any method compared"
            raise OptionError(f"{words}{_only_with(name)}")


def has_effect(name: str, value: Any, request: Request) -> bool:
    """Whether an option changes what the call does, or has its default."""
    option = OPTIONS.get(name)
    if option is None or option.effect is None or option.is_default(value):
        return True
    return option.effect.holds(request) or name in request.info.options


def _is_refused(name: str, value: Any, request: Request) -> bool:
    effect = OPTIONS[name].effect if name in OPTIONS else None
    return effect is not None and effect.refused and not has_effect(name, value, request)


def _only_with(name: str) -> str:
    effect = OPTIONS[name].effect
    return "" if effect is None else f", only with {effect.where}"
