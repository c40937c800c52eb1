"""Reading of a language model's config as a workload."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Unpack

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import path_name
from partitioner.estimation.named_devices import NamedDevice
from partitioner.formats.devices_in_place import check_rate, with_links
from partitioner.formats.file_formats import CONFIG, recognised
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.formats.load import assembled, checked_sizes
from partitioner.workload.devices import Devices
from partitioner.workload.workload import Workload


def load_config(
    path: str | os.PathLike[str],
    *,
    sequence: int,
    device: str | NamedDevice | Sequence[str | NamedDevice],
    bandwidth: float | None = None,
    accelerators: int | None = None,
    batch: int = 1,
    training: bool = True,
    dtype: str | None = None,
    efficiency: float | None = None,
    context: int = 0,
    memory: float | str | None = None,
    microbatches: int = 1,
    predictors: bool | None = None,
    generate: int | None = None,
    phases: Mapping[str, float] | None = None,
    communication: str | None = None,
    devices: Devices | None = None,
    peer_bandwidth: float | None = None,
    exchange_bandwidth: float | None = None,
    link_latency: float | None = None,
    ways: Sequence[LayoutOptions] | None = None,
    measured: float | Mapping[str, float] | None = None,
    **layout: Unpack[LayoutOptions],
) -> Workload:
    """Return the layers of a language model from its ``config.json``, as Hugging Face's libraries write it.

    A sample is a microbatch of `batch` sequences. ``docs/graphs_in.md`` says how times, memory and cache are
    estimated, and which families are known.

    Parameters
    ----------
    path
        The file.
    sequence, batch
        Tokens that a sequence passes at once, and sequences of a sample.
    device
        The name of the devices, such as ``"H100"``: see :data:`partitioner.estimation.DEVICES`; or that of a
        JSON file of a device, or a :class:`partitioner.estimation.NamedDevice`. A list for unlike devices:
        the graph then has times on kinds of these names.
    bandwidth
        Bytes per second between a device and host memory.
    peer_bandwidth
        Bytes per second between two devices, for transfers from device to device, which are then what is
        planned; None for `bandwidth`.
    exchange_bandwidth
        Bytes per second that a replica sends when weights are exchanged; None for that of transfers.
    link_latency
        Seconds that a message takes in addition to its bytes, see :class:`partitioner.Devices`; None for that
        of `devices`, else 0.
    accelerators, memory
        The number of devices, and the bytes of memory of each; None for one, and that of the named device.
        Neither is given with several names.
    training
        Whether to add backward nodes, gradients and optimizer.
    dtype
        The type of the numbers; None for that of the config.
    efficiency
        The part of the device's peak and bandwidth that every operator reaches; None for curves distilled
        from measurements (see :func:`partitioner.estimation.operation_time`).
    context
        Tokens of every sequence that are in the cache already.
    microbatches
        The samples of a batch, after which tied weights are exchanged.
    predictors
        Whether to include the layers that predict further tokens; None: for training.
    generate
        For serving: tokens that every sequence generates after its prompt of `sequence` tokens. A sample is
        then one sequence, of which `batch` pass together, and nodes have the cache of a sequence.
    phases
        With `generate`: the weights of ``prefill`` and ``decode`` in the times; None: 1 and `generate`.
    communication
        The model of communication, see :class:`partitioner.Devices`.
    devices
        All devices; None for one of each device named, or as many as `accelerators` says, which exchange
        tensors directly (`route` of :class:`partitioner.Devices`) if their links to one another are known.
    ways
        Further layouts, each a mapping with the options that differ, such as ``{"tensor": 4}``: every layer
        may run in these ways, too, see ``docs/alternatives.md``.
    measured
        Seconds of one sample that were measured on the device: all layers forward and, for training,
        backward; or those of some layers, by their names. All times are scaled alike, and a note says by how
        much.
    **layout
        How devices divide every layer among them, what is computed again, and the types of numbers in memory:
        :class:`partitioner.formats.llm.layout_options.LayoutOptions` lists the options.

    Raises
    ------
    WorkloadError
        Naming the file, the field, its value and what it may be.
    OptionError
        If an option is not in its range.
    """
    file_format, content = recognised(path)
    if file_format is not CONFIG:
        rule = f"must be a model's config; this is {file_format.name}, which load reads"
        raise WorkloadError([Flaw("file", "", "", rule)], path_name(path))
    if peer_bandwidth is not None:
        check_rate("peer_bandwidth", peer_bandwidth)
    options = {
        "sequence": sequence,
        "batch": batch,
        "device": device,
        "bandwidth": bandwidth if peer_bandwidth is None else peer_bandwidth,
        "training": training,
        "dtype": dtype,
        "efficiency": efficiency,
        "context": context,
        "microbatches": microbatches,
        "predictors": predictors,
        "generate": generate,
        "phases": phases,
        "ways": ways,
        "measured": measured,
        **layout,
    }
    sizes = checked_sizes(accelerators, memory, None, devices)
    if devices is None and accelerators is None and not isinstance(device, list | tuple):
        sizes["accelerators"] = 1
    found = assembled(path, file_format, content, options, sizes, devices, communication)
    direct = peer_bandwidth is not None
    links = {"exchange_bandwidth": exchange_bandwidth, "link_latency": link_latency}
    linked = with_links(found.devices, found.graph, direct=direct, **links)
    return replace(found, devices=linked)
