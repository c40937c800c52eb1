"""What a change of the cluster or of the numbers buys: the best layout under each, ranked anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from partitioner.base.clock import Clock
from partitioner.base.errors import OptionError
from partitioner.base.interruption import Interruption
from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.named_devices import NamedDevice, named_device
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.question import LayoutQuestion
from partitioner.planning.layouts.result import LayoutChange
from partitioner.planning.layouts.search import ClusterLayoutSearch
from partitioner.planning.layouts.timing import LayoutRun

OTHER_GPUS = ("A100-80", "H100", "H200", "B200", "MI300X")  # tried in place of the cluster's own
NARROW = "float8"


def other_devices(names: Sequence[str | NamedDevice] | None, cluster: Cluster) -> list[NamedDevice]:
    """Return the devices to try in place of the cluster's: those of some names, None for the usual ones.

    Raises
    ------
    OptionError
        If there is no device of a name.
    """
    found = [named_device(name) for name in (OTHER_GPUS if names is None else names)]
    return [device for device in found if device.name != cluster.device.name]


def changed_questions(
    question: LayoutQuestion, devices: Sequence[NamedDevice]
) -> Iterator[tuple[str, LayoutQuestion]]:
    """Yield the changes with their names, those of the cluster first, then the other devices.

    One that would ask for the same again is left out: a faster network where there is one server, narrower
    products than the device has.
    """
    for name, change in CHANGES.items():
        changed = change(question)
        if changed is not None:
            yield name, changed
    for device in devices:
        yield device.name, replace(question, cluster=_on(device, question.cluster))


def find_changes(
    question: LayoutQuestion,
    ranked: Sequence[LayoutRun],
    devices: Sequence[NamedDevice],
    clock: Clock,
    interruption: Interruption,
) -> tuple[LayoutChange, ...]:
    """Return what each change buys over the first of the layouts ranked without it.

    These are looked at first, so that a change which helps all of them is never said to cost time, however
    little of the space is looked at. Each change has an equal share of the time that is left; it begins with
    what the changes before it did not use. When the user ends the search, the others are left out.
    """
    asked, found = list(changed_questions(question, devices)), []
    before = question.tokens / ranked[0].seconds
    layouts = [run.layout for run in ranked]
    layouts += [replace(layout, data=2 * layout.data) for layout in layouts]  # for twice the GPUs
    for i, (name, changed) in enumerate(asked):
        if interruption.is_set():
            break
        share = Clock(max(0.0, clock.left) / (len(asked) - i))
        search = changed.search(1, share, interruption)
        found.append(_bought(name, changed, before, layouts, search))
    return tuple(found)


def _bought(
    name: str,
    question: LayoutQuestion,
    before: float,
    first: Sequence[ClusterLayout],
    search: ClusterLayoutSearch,
) -> LayoutChange:
    """Return the best layout of a changed question, next to `before` tokens per second."""
    try:
        question.cluster.device.speed(question.dtype)
    except OptionError as error:
        return LayoutChange(name, None, 0.0, 0.0, True, str(error))
    runs = search.search(*question.layouts(first))
    if not runs:
        why = "no layout fits" if search.whole else "no layout was found in the time"
        return LayoutChange(name, None, 0.0, 0.0, search.whole, why)
    row = question.row(runs[0])
    bound = min(search.least / MS_PER_SECOND, row.seconds)
    return LayoutChange(name, row, row.tokens_per_second / before, bound, search.whole)


def _with(question: LayoutQuestion, **changed: Any) -> LayoutQuestion:
    return replace(question, cluster=replace(question.cluster, **changed))


def _network(question: LayoutQuestion) -> LayoutQuestion | None:
    cluster = question.cluster
    return _with(question, network=2 * cluster.network) if cluster.gpus > cluster.node else None


def _peer(question: LayoutQuestion) -> LayoutQuestion | None:
    cluster = question.cluster
    device = replace(cluster.device, peer=2 * cluster.peer)
    return _with(question, peer=2 * cluster.peer, device=device) if cluster.node > 1 < cluster.gpus else None


def _memory(question: LayoutQuestion) -> LayoutQuestion | None:
    return _with(question, memory=2 * question.cluster.memory)


def _narrow(question: LayoutQuestion) -> LayoutQuestion | None:
    if question.dtype == NARROW or NARROW not in question.cluster.device.peak:
        return None
    return replace(question, dtype=NARROW)


def _wider(question: LayoutQuestion) -> LayoutQuestion | None:
    cluster = question.cluster
    return _with(question, node=2 * cluster.node) if cluster.gpus >= 2 * cluster.node else None


def _half(question: LayoutQuestion) -> LayoutQuestion | None:
    node, odd = divmod(question.cluster.node, 2)
    return _with(question, node=node) if node and not odd and question.cluster.gpus > node else None


def _more(question: LayoutQuestion) -> LayoutQuestion | None:
    return _with(question, gpus=2 * question.cluster.gpus)


CHANGES: dict[str, Callable[[LayoutQuestion], LayoutQuestion | None]] = {
    "network twice as fast": _network,
    "servers' links twice as fast": _peer,
    "twice the memory": _memory,
    "products in float8": _narrow,
    "twice the GPUs a server": _wider,
    "half the GPUs a server": _half,
    "twice the GPUs": _more,
}


def _on(device: NamedDevice, cluster: Cluster) -> Cluster:
    """Return the cluster with another device: its own links, and the same share of its memory."""
    peer = device.peer or device.host or cluster.network
    memory = device.memory * (cluster.memory / cluster.device.memory)
    return replace(cluster, device=device, peer=peer, memory=memory)
