"""Devices for a graph from a file: those of the file, changed by what a call asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from partitioner.base.errors import OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.workload.device_validation import is_amount, number_rule
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph

COUNTS = ("accelerator", "cpu")


def changed(
    devices: Devices,
    accelerators: int | None = None,
    memory: float | None = None,
    cpus: int | None = None,
    communication: str | None = None,
    exchange: str | None = None,
    route: str | None = None,
) -> Devices:
    """Return the devices with other counts, memory of an accelerator, or other models.

    What is None stays as it is.

    Raises
    ------
    OptionError
        If no kind has the name that an option is for.
    """
    kinds = devices.kinds
    _check_kinds(devices, accelerators=accelerators, memory=memory, cpus=cpus)
    for name, count in zip(COUNTS, (accelerators, cpus), strict=True):
        kinds = tuple(replace(k, count=count) if k.name == name and count is not None else k for k in kinds)
    if memory is not None:
        kinds = tuple(replace(k, memory=memory) if k.name == COUNTS[0] else k for k in kinds)
    models = {"communication": communication, "exchange": exchange, "route": route}
    given = {name: model for name, model in models.items() if model is not None}
    return replace(devices, kinds=kinds, **given)  # type: ignore[arg-type]


def with_links(
    devices: Devices,
    graph: Graph,
    *,
    direct: bool = False,
    exchange_bandwidth: float | None = None,
    link_latency: float | None = None,
) -> Devices:
    """Return the devices with direct links, another bandwidth of the exchange of weights, or a latency.

    Parameters
    ----------
    devices, graph
        The devices, and their graph, whose times must be in ms.
    direct
        Whether tensors go from device to device; if not, the route stays as it is.
    exchange_bandwidth
        Bytes per second that a replica sends; None for the bandwidths that the kinds have. It is that of all
        kinds that pay for transfers.
    link_latency
        Seconds of a message in addition to its bytes; None for those that the devices have.

    Raises
    ------
    OptionError
        If the bandwidth is not above 0, or the latency below it.
    """
    kinds = devices.kinds
    if exchange_bandwidth is not None:
        check_rate("exchange_bandwidth", exchange_bandwidth)
        speed = exchange_bandwidth / MS_PER_SECOND
        kinds = tuple(replace(each, bandwidth=speed) if each.pays_communication else each for each in kinds)
    kinds = kinds if graph.backward.any() else devices.kinds
    if link_latency is not None and not is_amount(link_latency):
        raise OptionError(f"link_latency = {shown(link_latency)}: {number_rule(link_latency)}, in seconds")
    late = devices.link_latency if link_latency is None else link_latency * MS_PER_SECOND
    return replace(devices, kinds=kinds, route="direct" if direct else devices.route, link_latency=late)


def check_rate(name: str, value: object) -> None:
    """Raise unless the value is a number of bytes per second above 0.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    if not is_amount(value) or not value:
        raise OptionError(f"{name} = {shown(value)}: must be a number above 0, in bytes per second")


def _check_kinds(devices: Devices, **given: float | None) -> None:
    known = [kind.name for kind in devices.kinds]
    for option, value in given.items():
        name = COUNTS[option == "cpus"]
        if value is not None and name not in known:
            rule = f"there is no kind {name!r}, only {', '.join(known)}: give the devices by kind (--pool)"
            raise OptionError(f"{option} = {value:g}: {rule}")


def pooled(devices: Devices, pool: Mapping[str, tuple[int, float | None]]) -> Devices:
    """Return a pool of devices: of each kind a number, and the memory of one in bytes if it is not None.

    Raises
    ------
    OptionError
        If there is no kind of that name, or devices are in levels or groups.

    Examples
    --------
    >>> pooled(Devices.accelerated(1, cpus=1), {"accelerator": (4, 16e9)}).names[-1]
    'accelerator3'
    """
    known = {kind.name: kind for kind in devices.kinds}
    if devices.levels or devices.groups:
        raise OptionError("pool: must not be given for devices in levels or groups")
    for name in pool:
        if name not in known:
            raise OptionError(f"pool: {shown(name)} must be one of {', '.join(known)}")
    kinds = tuple(
        replace(known[name], count=count, memory=known[name].memory if memory is None else memory)
        for name, (count, memory) in pool.items()
    )
    return replace(devices, kinds=kinds)


def one_accelerator(graph: Graph, memory: float | None = None, in_host: bool = False) -> Devices:
    """Return one accelerator and no CPU, the devices of a file that names none.

    If its data is in host memory, it pays for no transfers. Replicas exchange weights with the bandwidth that
    the graph was made with, if it is for training.
    """
    devices = Devices.accelerated(1, memory=memory)
    if in_host:
        first, *others = devices.kinds
        return replace(devices, kinds=(replace(first, pays_communication=False), *others))
    given = graph.extras.top.get("bandwidth")
    if not given or not graph.backward.any():
        return devices
    accelerator, cpu = devices.kinds
    return replace(devices, kinds=(replace(accelerator, bandwidth=given / MS_PER_SECOND), cpu))
