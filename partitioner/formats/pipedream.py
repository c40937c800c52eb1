"""Workloads from PipeDream's profiles: a forward node for each node and, for training, a backward node."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import OptionError, WorkloadError, shown
from partitioner.base.files import path_name
from partitioner.formats.profile import Profile, read_profile
from partitioner.workload.device_validation import MAX_COUNT
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Extras, Floats, Graph
from partitioner.workload.workload import Workload

MS_PER_SECOND = 1e3
BACKWARD = "/backward"


def load_pipedream(
    path: str | os.PathLike[str],
    *,
    bandwidth: float,
    accelerators: int,
    memory: float | None = None,
    cpus: int = 0,
    cpu_factor: float | None = None,
    training: bool = True,
    trimmed: bool = False,
    communication: str = "sequential",
) -> Workload:
    """Return the workload of a ``graph.txt`` of PipeDream's profiler; times are in ms, sizes in bytes.

    For training, every node has a backward node of the same colour class, whose id ends in ``/backward``,
    and every edge has a mirrored edge. The cost of an edge is the time to transfer the activation, or its
    gradient. A forward node holds its parameters and, for training, the activation of a sample; a backward
    node holds the gradients of the parameters. Replicas exchange weights with the same bandwidth. The extras
    of the graph keep the arguments, and for each node its bytes and its stage.

    Parameters
    ----------
    path
        The file.
    bandwidth
        Bytes per second between an accelerator and host memory.
    accelerators, memory
        The number of accelerators, and the bytes of memory of each; None for no limit.
    cpus, cpu_factor
        The number of CPUs, and the factor by which a CPU takes longer than an accelerator.
    training
        Whether to add backward nodes.
    trimmed
        Whether to leave out the nodes that PipeDream's planner leaves out: data loading, and unused items of
        tuples.
    communication
        The model of communication, see :class:`partitioner.Devices`.

    Raises
    ------
    WorkloadError
        Naming the file and every line, field, value and rule that was broken.
    OptionError
        If the bandwidth or the factor is out of its range.
    """
    _require_positive("bandwidth", bandwidth)
    for name, flag in (("training", training), ("trimmed", trimmed)):
        if not isinstance(flag, bool):
            raise OptionError(f"{name} = {shown(flag)}: must be True or False")
    if not is_count(cpus, 0, MAX_COUNT):
        raise OptionError(f"cpus = {shown(cpus)}: must be an integer from 0 to {MAX_COUNT:,}")
    if cpus or cpu_factor is not None:
        _require_positive("cpu_factor", cpu_factor)
    source, profile = path_name(path), read_profile(path)
    given = {"bandwidth": bandwidth, "cpuFactor": cpu_factor, "training": training, "trimmed": trimmed}
    try:
        graph = _graph(profile.trimmed() if trimmed else profile, given)
        devices = Devices.accelerated(accelerators, memory=memory, cpus=cpus, communication=communication)
        accelerator, *others = devices.kinds
        linked = replace(accelerator, bandwidth=bandwidth / MS_PER_SECOND)
        return Workload(graph, replace(devices, kinds=(linked, *others)), Path(path).stem)
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error


def _graph(profile: Profile, given: dict[str, Any]) -> Graph:
    n, training = len(profile), given["training"]
    time, ids, pairs = profile.forward, profile.ids, profile.edges
    if training:
        time = np.concatenate((time, profile.backward))
        ids += tuple(node + BACKWARD for node in ids)
        pairs = np.concatenate((pairs, pairs[:, ::-1] + n))
    copies = 2 if training else 1
    with np.errstate(over="ignore"):
        cost = np.tile(profile.activation[profile.edges[:, 0]] / given["bandwidth"] * MS_PER_SECOND, copies)
        times = _times(time, given["cpuFactor"])
    return Graph.from_arrays(
        times,
        [(ids[u], ids[v]) for u, v in pairs.tolist()],
        cost,
        ids=ids,
        backward=np.arange(len(ids)) >= n,
        color=[*profile.ids] * 2 if training else None,
        names=profile.descriptions * copies,
        extras=Extras({"timeUnit": "ms", **given}, _kept(profile) * copies),
        **_memory(profile, training),
    )


def _memory(profile: Profile, training: bool) -> dict[str, Any]:
    """Return the parts of the memory of each node, in bytes, forward nodes first."""
    if not training:
        return {"parameters": profile.parameters}
    none = np.zeros(len(profile))
    return {
        "parameters": np.concatenate((profile.parameters, none)),
        "gradients": np.concatenate((none, profile.parameters)),
        "activations": np.concatenate((profile.activation, none)),
    }


def _times(time: Floats, cpu_factor: float | None) -> dict[str, Floats]:
    return {"accelerator": time} | ({} if cpu_factor is None else {"cpu": time * cpu_factor})


def _kept(profile: Profile) -> list[dict[str, Any]]:
    """Return the data of each node that has no field in a graph, for the extras."""
    columns = (profile.activation.tolist(), profile.parameters.tolist(), profile.stage.tolist())
    return [
        {"activationBytes": activation, "parameterBytes": parameters}
        | ({} if stage < 0 else {"stageId": stage})
        for activation, parameters, stage in zip(*columns, strict=True)
    ]


def _require_positive(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value <= sys.float_info.max):  # type: ignore[operator]
        raise OptionError(f"{name} = {shown(value)}: must be a number above 0")
