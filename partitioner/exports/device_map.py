"""Plans as device maps of Hugging Face accelerate."""

from __future__ import annotations

import json

from partitioner.exports.stages import stages_of
from partitioner.exports.target import Target
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.extras import LOOSE
from partitioner.workload.workload import Workload

ACCELERATE = Target("accelerate")
HOST = "cpu"


def device_map(plan: Plan, workload: Workload) -> str:
    """Return the device of every module, and the memory of every device, as JSON.

    Devices with a memory of their own are numbered in the order of ``Devices.names``, from 0; all others are
    ``"cpu"``. Parameters and buffers below no layer of the graph, such as a class token, have entries of
    their own if the graph's nodes list them. The keys of ``max_memory`` are texts, as JSON has it: accelerate
    takes numbers as integers.

    Raises
    ------
    ExportError
        If a module is cut in two, or tied weights are on several devices.
    """
    found = stages_of(workload, plan, ACCELERATE)
    number = numbers(workload.devices)
    placed = {name: number[stage.device] for stage in found.stages for name in stage.modules}
    placed |= {
        name: number[found.stages[found.of[i]].device]
        for i, extra in enumerate(workload.graph.extras.nodes)
        for name in _texts(extra.get(LOOSE))
        if found.of[i] >= 0
    }
    memory: dict[int | str, int] = {}
    for kind in workload.devices.kinds:
        for name in (kind.device(i) for i in range(kind.count if kind.memory is not None else 0)):
            memory[number[name]] = memory.get(number[name], 0) + int(kind.memory or 0)
    return json.dumps({"device_map": placed, "max_memory": memory}, indent=1) + "\n"


def _texts(value: object) -> list[str]:
    """Return the texts of a list in a field of an input, which may hold anything."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []


def numbers(devices: Devices) -> dict[str, int | str]:
    """Return the number of every device with a memory of its own, ``"cpu"`` for the others.

    Examples
    --------
    >>> numbers(Devices.accelerated(2, cpus=1))
    {'accelerator0': 0, 'accelerator1': 1, 'cpu0': 'cpu'}
    """
    own = [kind.device(i) for kind in devices.kinds if kind.pays_communication for i in range(kind.count)]
    return {name: own.index(name) if name in own else HOST for name in devices.names}
