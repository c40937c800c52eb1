"""Plans as numbers of layers for servers of language models: vLLM and SGLang."""

from __future__ import annotations

from collections.abc import Iterator

from partitioner.exports.blocks import Blocks, blocks_of
from partitioner.exports.target import ONE, Target
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.groups import group_numbers
from partitioner.workload.workload import Workload

VLLM = Target("vllm", line=True, ranks=ONE, ties=True, own_memory=True, blocks=True, tokens=True)
SGLANG = Target("sglang", line=True, ranks=ONE, ties=True, one_kind=True, blocks=True, tokens=True)


def vllm(plan: Plan, workload: Workload) -> str:
    """Return the environment variable of vLLM with the number of layers of each rank, in a line.

    Where stages are on several kinds of devices, or in explicit groups, comments before it say which device
    must have which rank.

    Raises
    ------
    ExportError
        If vLLM cannot express the plan.
    """
    found = blocks_of(workload, plan, VLLM)
    notes = "".join(f"# {line}\n" for line in _ranks(workload, found))
    return notes + _variable("VLLM_PP_LAYER_PARTITION", found)


def sglang(plan: Plan, workload: Workload) -> str:
    """Return the environment variable of SGLang with the number of layers of each rank, in a line.

    Raises
    ------
    ExportError
        If SGLang cannot express the plan.
    """
    return _variable("SGLANG_PP_LAYER_PARTITION", blocks_of(workload, plan, SGLANG))


def _variable(name: str, found: Blocks) -> str:
    return f"{name}={','.join(map(str, found.counts))}\n"


def _ranks(workload: Workload, found: Blocks) -> Iterator[str]:
    """Yield lines on the device of each rank, unless all devices are equal."""
    devices, ranks = workload.devices, found.stages.ranks
    hosts = [_host(devices, name) for name in ranks]
    if len({_kind(devices, name) for name in ranks}) == 1 and len(set(hosts)) == 1:
        return
    degree = workload.graph.extras.top.get("degree", 1)
    yield f"run with --pipeline-parallel-size {len(ranks)} --tensor-parallel-size {degree}"
    for rank, (name, host, count) in enumerate(zip(ranks, hosts, found.counts, strict=True)):
        layers = f"{count} layer{'s' * (count != 1)}"
        yield f"pipeline rank {rank}: {name}{f' in {host}' if host else ''}, {layers}"
    yield "on a host, ranks follow CUDA_VISIBLE_DEVICES: list its GPUs in this order"
    if len(set(hosts)) > 1:
        yield "ranks follow hosts, those of a host one after the other: give hosts --node-rank in this order"


def _kind(devices: Devices, name: str) -> int:
    """Return the position of a device's kind."""
    found = devices.kind_of(name)
    assert found is not None
    return found[0]


def _host(devices: Devices, name: str) -> str:
    """Return the name of a device's explicit group; empty if there are none."""
    found = devices.kind_of(name)
    if not devices.groups or found is None:
        return ""
    kind = devices.kinds[found[0]]
    return devices.groups[int(group_numbers(devices.groups, kind.name, kind.count)[found[1]])].name
