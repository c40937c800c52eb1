"""The rules for the fields of a row that is read from a file of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from partitioner.base.errors import Flaw, one_of, shown
from partitioner.sweeps.row import FAILED, FEASIBLE, INFEASIBLE, NO_PLAN, OPTIMAL

STATUSES = (OPTIMAL, FEASIBLE, INFEASIBLE, NO_PLAN, FAILED)
MOST = 10**15  # of devices and attempts
DEEPEST = 20  # levels of an option's value


class _Rule(NamedTuple):
    holds: Callable[[Any], bool]
    words: str


def flaws_of(record: Mapping[str, Any], where: str) -> list[Flaw]:
    """Return what is wrong with the fields of a row, all of which are known; `where` says which row it is.

    Examples
    --------
    >>> print(flaws_of({"key": "1f", "attempts": "2"}, "line 3")[0])
    line 3: attempts = '2': must be an integer of at least 0 and at most 1,000,000,000,000,000
    """
    found = [
        Flaw(where, name, shown(value), RULES[name].words)
        for name, value in record.items()
        if not RULES[name].holds(value)
    ]
    if found:
        return found
    if record.get("plan", "") not in ("", f"{record['key']}.json"):
        rule = "must be empty or the row's key with .json: the name of a file in the folder of plans"
        return [Flaw(where, "plan", shown(record["plan"]), rule)]
    if record.get("status") in (OPTIMAL, FEASIBLE) and None in (record.get("value"), record.get("bound")):
        rule = f"must be {one_of(None, STATUSES[2:])}, since value or bound is missing"
        return [Flaw(where, "status", shown(record["status"]), rule)]
    return []


def _text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a character of two
        return False
    return True


def _key(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isalnum()


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _plain(value: object, depth: int = DEEPEST) -> bool:
    """Whether a value of an option is JSON that the writers of tables can take."""
    if isinstance(value, list | dict):
        inner = value if isinstance(value, list) else [*value, *value.values()]
        return depth > 0 and all(_plain(each, depth - 1) for each in inner)
    return value is None or isinstance(value, bool) or _text(value) or _number(value)


TEXT = _Rule(_text, "must be a text that UTF-8 can write")
COUNT = _Rule(_count, f"must be an integer of at least 0 and at most {MOST:,}")
PERHAPS = _Rule(lambda value: value is None or _number(value), "must be a finite number or null")
RULES: Mapping[str, _Rule] = {
    "key": _Rule(_key, "must be a text of letters and digits"),
    "status": _Rule(lambda value: value in STATUSES, f"must be {one_of(None, STATUSES)}"),
    "options": _Rule(
        lambda value: isinstance(value, dict) and _plain(value),
        f"must be an object of finite numbers, texts, lists and objects, at most {DEEPEST} levels deep",
    ),
    "value": PERHAPS,
    "bound": PERHAPS,
    "seconds": _Rule(lambda value: _number(value) and value >= 0, "must be a finite number of at least 0"),
    **dict.fromkeys(("devices", "used", "attempts"), COUNT),
    **dict.fromkeys(
        ("workload", "pool", "objective", "split", "method", "stop_reason", "time_unit", "reason", "plan"),
        TEXT,
    ),
}
