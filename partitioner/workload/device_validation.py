"""Checks of kinds of devices, and of the numbers that times, costs and sizes may be."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from partitioner.base.errors import Flaw, OptionError, shown

MAX_COUNT = 65_536
SMALLEST, LARGEST = 1e-100, 1e100
SEPARATOR = ":"


def kind_flaws(kinds: Sequence[Any]) -> list[Flaw]:
    """Return every rule that kinds of devices break.

    Parameters
    ----------
    kinds
        Objects of type :class:`partitioner.DeviceKind`, whose fields may have any value.
    """
    flaws: list[Flaw] = []
    for kind in kinds:
        where = f"device kind {kind.name if isinstance(kind.name, str) else shown(kind.name)}"
        if not isinstance(kind.name, str) or not kind.name:
            flaws.append(Flaw("devices", "name", shown(kind.name), "must be a text that is not empty"))
        if isinstance(kind.count, bool) or not isinstance(kind.count, int):
            flaws.append(Flaw(where, "count", shown(kind.count), "must be an integer"))
        elif not 0 <= kind.count <= MAX_COUNT:
            flaws.append(Flaw(where, "count", shown(kind.count), f"must be 0 to {MAX_COUNT:,}"))
        if kind.memory is not None and not is_amount(kind.memory):
            flaws.append(Flaw(where, "memory", shown(kind.memory), number_rule(kind.memory)))
        if not isinstance(kind.pays_communication, bool | np.bool_ | int):
            rule = "must be True or False"
            flaws.append(Flaw(where, "pays_communication", shown(kind.pays_communication), rule))
        flaws += _speed_flaws(kind, where)
    names = [kind.name for kind in kinds]
    flaws += [
        Flaw("devices", "name", shown(name), "is given to two kinds")
        for name in sorted({name for name in names if isinstance(name, str) and names.count(name) > 1})
    ]
    flaws += [
        Flaw("devices", "name", shown(name), f"must differ from the name of another kind without {SEPARATOR}")
        for name in names
        if isinstance(name, str) and name.endswith(SEPARATOR) and name[:-1] in names and name[-2:-1].isdigit()
    ]
    if not flaws and sum(kind.count for kind in kinds) == 0:
        flaws.append(Flaw("devices", "count", "0", "there must be at least one device"))
    return flaws


def _speed_flaws(kind: Any, where: str) -> list[Flaw]:
    given = {"time_factor": kind.time_factor, "transfer_factor": kind.transfer_factor}
    given |= {} if kind.bandwidth is None else {"bandwidth": kind.bandwidth}
    rule = f"must be a number from {SMALLEST:g} to {LARGEST:g}"
    flaws = [
        Flaw(where, name, shown(value), rule)
        for name, value in given.items()
        if not is_amount(value) or value == 0
    ]
    if kind.times is not None and not isinstance(kind.times, str):
        flaws.append(Flaw(where, "times", shown(kind.times), "must be the name of a kind, or None"))
    return flaws


def is_amount(value: Any) -> bool:
    """Whether the value is allowed as a time, cost or size: 0, or from 1e-100 to 1e100."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and bool(value == 0 or SMALLEST <= value <= LARGEST)


def check_positive(**given: object) -> None:
    """Raise if one of the options is not an amount above 0.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    for name, value in given.items():
        if not is_amount(value) or not value:
            raise OptionError(f"{name} = {shown(value)}: must be a number above 0")


def number_rule(value: object) -> str:
    """Return the rule for times, costs and sizes that `value` breaks, for an error message."""
    if isinstance(value, int | float) and value is not True and 0 < value < math.inf:
        return f"must be 0, or from {SMALLEST:g} to {LARGEST:g}"
    return "must be a finite number of at least 0"
