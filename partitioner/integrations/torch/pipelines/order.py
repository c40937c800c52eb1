"""The order of a model's operators in runs, each on one device, as stages of a pipeline need it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple


class DeviceRun(NamedTuple):
    """Operators that a device runs one after the other."""

    device: str
    operators: tuple[str, ...]


def device_runs(
    operators: Sequence[str], before: Mapping[str, Set[str]], device_of: Mapping[str, str]
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

    Examples
    --------
    >>> device_runs("abcd", {"c": {"a"}, "d": {"b"}}, {"a": "x", "b": "y", "c": "x", "d": "y"})
    [DeviceRun(device='x', operators=('a', 'c')), DeviceRun(device='y', operators=('b', 'd'))]
    """
    left, done = list(operators), set[str]()
    found = []
    while left:
        options = [
            DeviceRun(device, _runnable(left, done, before, device_of, device))
            for device in dict.fromkeys(device_of[name] for name in left)
        ]
        missing = {
            one.device: sum(device_of[name] == one.device for name in left) - len(one.operators)
            for one in options
        }
        best = min(options, key=lambda one: (missing[one.device] > 0, -len(one.operators)))
        found.append(best)
        done.update(best.operators)
        left = [name for name in left if name not in done]
    return found


def _runnable(
    left: Sequence[str],
    done: Set[str],
    before: Mapping[str, Set[str]],
    device_of: Mapping[str, str],
    device: str,
) -> tuple[str, ...]:
    """Return the operators that a device can run now without waiting for another one."""
    finished, found = set(done), []
    for name in left:
        if device_of[name] == device and finished.issuperset(before.get(name, ())):
            finished.add(name)
            found.append(name)
    return tuple(found)
