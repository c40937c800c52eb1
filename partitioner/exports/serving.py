"""Plans as numbers of layers for servers of language models: vLLM and SGLang."""

from __future__ import annotations

from partitioner.exports.blocks import blocks_of
from partitioner.exports.target import ONE, Target
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

VLLM = Target("vllm", line=True, ranks=ONE, ties=True, one_kind=True, blocks=True)
SGLANG = Target("sglang", line=True, ranks=ONE, ties=True, one_kind=True, blocks=True)


def vllm(plan: Plan, workload: Workload) -> str:
    """Return the environment variable of vLLM with the number of layers of each rank, in a line.

    Raises
    ------
    ExportError
        If vLLM cannot express the plan.
    """
    return _variable("VLLM_PP_LAYER_PARTITION", plan, workload, VLLM)


def sglang(plan: Plan, workload: Workload) -> str:
    """Return the environment variable of SGLang with the number of layers of each rank, in a line.

    Raises
    ------
    ExportError
        If SGLang cannot express the plan.
    """
    return _variable("SGLANG_PP_LAYER_PARTITION", plan, workload, SGLANG)


def _variable(name: str, plan: Plan, workload: Workload, target: Target) -> str:
    counts = blocks_of(workload, plan, target).counts
    return f"{name}={','.join(map(str, counts))}\n"
