"""Times of nodes from the profile that ONNX Runtime writes (``SessionOptions.enable_profiling``)."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from statistics import median

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import path_name, read_json
from partitioner.formats.record import Record, amount, listing, text

KERNEL = "_kernel_time"
US = 1e-3  # ms of a microsecond
HOW = "profile with SessionOptions.graph_optimization_level = ORT_DISABLE_ALL, or plan the optimized model"


def profile_times(path: str | os.PathLike[str], names: Sequence[str], others: Collection[str]) -> list[float]:
    """Return the median time in milliseconds of each node over the runs in a profile.

    Parameters
    ----------
    path
        The JSON file.
    names
        The nodes.
    others
        Nodes of constants alone, whose times do not count: they need to run once.

    Raises
    ------
    WorkloadError
        Naming the file and each node that only the profile or only the model has.
    """
    source = path_name(path)
    flaws: list[Flaw] = []
    found: dict[str, list[float]] = {}
    content = read_json(path)
    if not isinstance(content, list):
        raise WorkloadError([Flaw("file", "", shown(content), "must be a list of events")], source)
    for i, event in enumerate(listing(content)):
        record = Record(event, f"event {i}", flaws)
        if record.data.get("cat") != "Node":
            continue
        name = record.take("name", text, "")
        if name.endswith(KERNEL):
            found.setdefault(name.removesuffix(KERNEL), []).append(record.take("dur", amount, 0.0))
    known = set(names)
    missing = [name for name in names if name not in found]
    flaws += [Flaw(f"node {shown(name)}", "", "", f"has no time in the profile; {HOW}") for name in missing]
    unknown = [name for name in found if name not in known and name not in others]
    flaws += [Flaw(f"node {shown(name)}", "", "", f"is not in the model; {HOW}") for name in unknown]
    if flaws:
        raise WorkloadError(flaws, source)
    return [median(found[name]) * US for name in names]
