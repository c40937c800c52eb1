"""Reading of Sailor's profiles in Piper's format: an input of Piper for each microbatch size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from partitioner.base.errors import OptionError, shown
from partitioner.formats.devices_in_place import changed
from partitioner.formats.piper import piper_graph
from partitioner.workload.device_validation import MAX_COUNT
from partitioner.workload.devices import Devices
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Graph


def sailor_graph(
    content: Any, source: str, *, batch: int | None = None, bandwidth: float | None = None, **options: Any
) -> tuple[Graph, Devices]:
    """Return the layer graph of a profile of Sailor's in Piper's format, and one device.

    `batch` is the microbatch size, None for the only one; the file's bandwidth and number of devices are
    placeholders and are not read. Other options are those of :func:`piper_graph`.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    OptionError
        If an option is missing or not in its range.
    """
    wanted = next(iter(content)) if batch is None and len(content) == 1 else str(batch)
    if wanted not in content:
        raise OptionError(f"batch = {shown(batch)}: must be one of {', '.join(sorted(content, key=int))}")
    if bandwidth is None:
        raise OptionError("bandwidth = None: must be a number above 0, in bytes per second")
    chosen = content[wanted]
    whole_groups = {**chosen, "maxDevices": MAX_COUNT} if isinstance(chosen, dict) else chosen
    graph, devices = piper_graph(whole_groups, source, bandwidth=bandwidth, alternatives=False, **options)
    graph = replace(graph, extras=Extras({**graph.extras.top, "batch": int(wanted)}, graph.extras.nodes))
    return graph, changed(devices, 1)


def is_by_batch(content: Mapping[str, Any]) -> bool:
    """Whether a file holds inputs by microbatch size, as Sailor's do."""
    return bool(content) and all(
        name.isascii() and name.isdigit() and isinstance(one, dict) and "nodes" in one
        for name, one in content.items()
    )
