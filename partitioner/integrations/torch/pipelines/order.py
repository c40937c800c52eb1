"""The order of a model's operators in runs, each on one device, as stages of a pipeline need it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple


class DeviceRun(NamedTuple):
    """Operators that a device runs one after the other."""

    device: str
    operators: tuple[str, ...]


def device_runs(
    operators: Sequence[str],
    before: Mapping[str, Set[str]],
    device_of: Mapping[str, str],
    stage_of: Mapping[str, int] | None = None,
) -> list[DeviceRun]:
    """Return all operators in runs on one device each, in an order in which they may run.

    The next run is that of a device that can finish all of its operators, else of the one that can run most
    of them; of equal ones that of the device of the earliest operator. If the devices form a chain, or no
    tensor comes back to a device, each device so has one run.

    Parameters
    ----------
    operators
        In the order of the program, in which they may run.
    before
        The operators that each one waits for.
    device_of
        The device of each.
    stage_of
        Numbers of operators of which only equal ones share a run; None if all do.

    Examples
    --------
    >>> device_runs("abcd", {"c": {"a"}, "d": {"b"}}, {"a": "x", "b": "y", "c": "x", "d": "y"})
    [DeviceRun(device='x', operators=('a', 'c')), DeviceRun(device='y', operators=('b', 'd'))]
    """
    home = {name: (device_of[name], (stage_of or {}).get(name, 0)) for name in operators}
    left, done = list(operators), set[str]()
    found = []
    while left:
        options = {
            place: _runnable(left, done, before, home, place)
            for place in dict.fromkeys(home[name] for name in left)
        }
        waiting = Counter(home[name] for name in left)
        best = min(options, key=lambda place: (waiting[place] > len(options[place]), -len(options[place])))
        found.append(DeviceRun(best[0], options[best]))
        done.update(options[best])
        left = [name for name in left if name not in done]
    return found


def _runnable(
    left: Sequence[str],
    done: Set[str],
    before: Mapping[str, Set[str]],
    home: Mapping[str, tuple[str, int]],
    place: tuple[str, int],
) -> tuple[str, ...]:
    """Return the operators that a place can run now without waiting for another one."""
    finished, found = set(done), []
    for name in left:
        if home[name] == place and finished.issuperset(before.get(name, ())):
            finished.add(name)
            found.append(name)
    return tuple(found)
