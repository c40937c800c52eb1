"""What became of a job in one checkout, and where two checkouts differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SHOWN = 60  # characters of a value in a message


@dataclass(frozen=True)
class Run:
    """What became of a job.

    Parameters
    ----------
    seconds
        Of the solve alone.
    stopped
        Whether patience ended it; then its plan depends on the clock.
    plan
        All of the plan that is compared, by name; None if there is none.
    failure, message
        The name of the error and its text, if there is no plan.
    """

    seconds: float
    stopped: bool
    plan: Mapping[str, Any] | None = None
    failure: str = ""
    message: str = ""


def differences(old: Run, new: Run) -> list[str]:
    """Return, in words, where two runs of a job differ; numbers must agree to the last digit.

    Errors must be of the same type; their texts may differ.

    Examples
    --------
    >>> first, second = ({"value": value, "placement": {"0": "gpu0"}} for value in (3.0, 4.0))
    >>> differences(Run(0.1, False, first), Run(0.2, False, second))
    ['value: 3.0, then 4.0']
    """
    if old.plan is None or new.plan is None:
        words = [_ending(run) for run in (old, new)]
        return [] if old.failure == new.failure else [f"{words[0]}, then {words[1]}"]
    pairs = [(name, old.plan[name], new.plan[name]) for name in old.plan]
    return [_difference(*pair) for pair in pairs if pair[1] != pair[2]]


def _ending(run: Run) -> str:
    return (
        f"{run.failure} ({run.message})" if run.failure else f"a plan of value {(run.plan or {})['value']!r}"
    )


def _difference(name: str, first: Any, second: Any) -> str:
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        moved = [key for key in first if first[key] != second.get(key)]
        return (
            f"{name}: {len(moved)} of {len(first)} entries differ, the first of them {', '.join(moved[:3])}"
        )
    if isinstance(first, list) and isinstance(second, list):
        places = [i for i, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]]
        place = places[0] if places else min(len(first), len(second))
        return f"{name}: lists of {len(first)} and {len(second)} entries that differ from entry {place} on"
    return f"{name}: {_short(first)}, then {_short(second)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
