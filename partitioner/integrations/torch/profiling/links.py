"""Transfer times between devices, measured between processes that exchange tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

from partitioner.base.argument_types import (
    check_word,
    is_count,
    require_callable,
    require_items,
    require_type,
)
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.estimation.links import LinkFit, Transfer, fit_transfers
from partitioner.integrations.torch.installed import require_torch
from partitioner.methods.method import Progress
from partitioner.workload.devices import Devices

GLOO, NCCL = BACKENDS = ("gloo", "nccl")
SIZES = tuple(4**power for power in range(4, 13))  # 256 B to 16 MiB
LARGEST = 2**40
PAIR_RULE = "must be a pair of two different devices"


def links(
    devices: Devices,
    *,
    backend: str = GLOO,
    pairs: Iterable[tuple[str, str]] | None = None,
    sizes: Iterable[int] = SIZES,
    rounds: int = 20,
    time_limit: float = 60.0,
    on_progress: Callable[[Progress], None] | None = None,
    stop: StopEvent | None = None,
) -> LinkFit:
    """Return transfer times between devices as lines in the size, as a pipeline's processes have them.

    For each pair two processes send tensors to one another and back; the time of a transfer is half of
    that. With gloo the tensors are in the memory of this machine; with NCCL they are on the CUDA devices
    whose numbers are the positions of the pair in ``devices.names``. The processes have ended when the call
    returns.

    Parameters
    ----------
    devices
        The devices between which tensors are sent.
    backend
        ``"gloo"`` or ``"nccl"``.
    pairs
        The pairs of names of devices to measure, each for both directions; None for all. The other ones
        cost nothing in the result, so that a plan uses them and the next call measures them, as in FastT.
    sizes
        The bytes of the tensors; the time of other sizes is that of the line through the measured ones.
    rounds
        How many times each size is sent there and back; the median counts.
    time_limit
        Seconds that a pair may take before it is given up.
    on_progress
        Called with a :class:`partitioner.Progress` before each pair.
    stop
        Once it is set, or Ctrl-C is pressed, the pairs until then count.

    Returns
    -------
    LinkFit
        In ms and bytes. Its `transfers` need a graph whose edges cost their bytes, such as one that
        :func:`profile` makes with ``bandwidth=None``.

    Raises
    ------
    BackendUnavailable
        If torch is not installed, there are too few CUDA devices, or the processes do not reach one another.
    OptionError
        If an option is not of its type or range.
    """
    require_type("devices", devices, Devices)
    check_word("backend", backend, BACKENDS)
    require_callable(on_progress=on_progress)
    chosen, checked = _pairs(devices.names, pairs), _sizes(sizes)
    if not is_count(rounds):
        raise OptionError(f"rounds = {shown(rounds)}: must be an integer of at least 1")
    if isinstance(time_limit, bool) or not isinstance(time_limit, int | float) or not time_limit > 0:
        raise OptionError(f"time_limit = {shown(time_limit)}: must be a number above 0, in seconds")
    require_torch()
    from partitioner.integrations.torch.profiling.exchange import Exchange

    found: list[Transfer] = []
    with Interruption(stop) as interruption:
        exchange = Exchange(backend, checked, rounds, float(time_limit), interruption)
        for number, (a, b) in enumerate(chosen):
            if on_progress is not None:
                on_progress(Progress(f"transfers {a}, {b}", number, len(chosen), float("inf"), 0.0, 0.0))
            times = exchange.times(devices.names.index(a), devices.names.index(b))
            found += [(*ends, size, time) for ends in ((a, b), (b, a)) for size, time in times]
            if interruption.asked:
                break
    return fit_transfers(devices, found)


def _pairs(names: tuple[str, ...], pairs: object) -> list[tuple[str, str]]:
    """Return each pair once, in the order of the devices."""
    if pairs is None:
        return list(combinations(names, 2))
    found: dict[tuple[str, str], None] = {}
    for pair in require_items("pairs", pairs):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or pair[0] == pair[1]:
            raise OptionError(f"pairs: {shown(pair)}: {PAIR_RULE}")
        for name in pair:
            if name not in names:
                raise OptionError(f"pairs: {shown(name)}: must be {one_of(name, names)}")
        first, second = sorted(pair, key=names.index)
        found[first, second] = None
    return list(found)


def _sizes(sizes: object) -> tuple[int, ...]:
    found = require_items("sizes", sizes)
    bad = next((size for size in found if not is_count(size, 1, LARGEST)), None)
    if bad is not None or not found:
        raise OptionError(f"sizes: {shown(bad if found else sizes)}: must be integers from 1 to {LARGEST}")
    return tuple(found)
