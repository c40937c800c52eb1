"""Writing of plans for other tools: the writers by name, also those that other packages provide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from partitioner.base.argument_types import require_type
from partitioner.base.errors import OptionError, PartitionerError, shown
from partitioner.base.file_types import check_suffixes, entry_for
from partitioner.base.files import write_bytes, write_text
from partitioner.base.registry import Registry
from partitioner.exports.boundaries import ONNX, boundaries
from partitioner.exports.deepspeed import DEEPSPEED, deepspeed
from partitioner.exports.device_map import ACCELERATE, device_map
from partitioner.exports.llama_cpp import LLAMA_CPP, llama_cpp
from partitioner.exports.megatron import MEGATRON, megatron
from partitioner.exports.node_tables import graphviz, nodes_csv, stages_csv
from partitioner.exports.serving import SGLANG, VLLM, sglang, vllm
from partitioner.exports.torch_pipelining import TORCH, torch_pipelining
from partitioner.exports.torchtitan import TORCHTITAN, torchtitan
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

TAKEN = (".json",)  # the suffix of plans


@dataclass(frozen=True)
class Writer:
    """A writer of plans in one format.

    Parameters
    ----------
    name
        The name of the format, for messages.
    suffixes
        The suffixes of its files, such as ``(".yaml", ".yml")``; ``".json"`` is reserved for plans.
    content
        A function of ``(plan, workload)`` that returns the content of the file, a text or bytes.

    Raises
    ------
    OptionError
        If a field is of another type.
    """

    name: str
    suffixes: tuple[str, ...]
    content: Callable[[Plan, Workload], str | bytes]

    def __post_init__(self) -> None:
        check_suffixes(f"writer {shown(self.name)}", self.suffixes, TAKEN)
        if not callable(self.content):
            raise OptionError(
                f"writer {shown(self.name)}: content = {shown(self.content)}: must be a function"
            )


TARGETS = {
    target.name: target
    for target in (TORCH, TORCHTITAN, MEGATRON, DEEPSPEED, VLLM, SGLANG, ACCELERATE, LLAMA_CPP, ONNX)
}
OWN = (
    Writer("torch", (".torch",), torch_pipelining),
    Writer("torchtitan", (".torchtitan",), torchtitan),
    Writer("megatron", (".megatron",), megatron),
    Writer("deepspeed", (".deepspeed",), deepspeed),
    Writer("vllm", (".vllm",), vllm),
    Writer("sglang", (".sglang",), sglang),
    Writer("accelerate", (".accelerate",), device_map),
    Writer("llama.cpp", (".llama.cpp",), llama_cpp),
    Writer("onnx", (".boundaries",), boundaries),
    Writer("stages", (".stages.csv",), stages_csv),
    Writer("nodes", (".csv",), nodes_csv),
    Writer("graphviz", (".dot", ".gv"), graphviz),
)
WRITERS = Registry("writer", "partitioner.exports", Writer, OWN)


def export(workload: Workload, plan: Plan, to: str) -> str | bytes:
    """Return a plan in the words of another tool; ``docs/exports.md`` shows what is written for each.

    Parameters
    ----------
    workload
        The workload that the plan is made for. If the plan contains its devices, those of the workload are
        not used.
    plan
        The plan.
    to
        The name of the writer: ``"torch"``, ``"torchtitan"``, ``"megatron"``, ``"deepspeed"``, ``"vllm"``,
        ``"sglang"``, ``"accelerate"``, ``"llama.cpp"``, ``"onnx"`` (boundaries of the pieces), ``"stages"``
        and ``"nodes"`` (CSV), ``"graphviz"``, or one that another package provides.

    Raises
    ------
    ExportError
        If that tool cannot express the plan; the message names each module that breaks a rule.
    WorkloadError
        If the plan is made for another workload.
    OptionError
        If there is no writer of that name.

    Examples
    --------
    >>> from partitioner import Devices, Graph, solve
    >>> layers = ["embed", "layers.0", "layers.1", "layers.2", "head"]
    >>> edges = [(i, i + 1) for i in range(4)]
    >>> graph = Graph.from_arrays({"accelerator": [2.0] * 5}, edges, layer=layers)
    >>> workload = Workload(graph, Devices.accelerated(2))
    >>> print(export(workload, solve(graph, workload.devices), "vllm"), end="")
    VLLM_PP_LAYER_PARTITION=2,1
    """
    require_type("workload", workload, Workload)
    require_type("plan", plan, Plan)
    WRITERS.check("to", to)
    planned = workload if plan.hardware is None else replace(workload, devices=plan.hardware)
    planned = replace(planned, graph=plan.record.trained(planned.graph))
    plan.record.check_graph(planned.graph, planned.devices, strict=True)
    return _content(WRITERS[to], plan, planned)


def save_plan(plan: Plan, workload: Workload, path: str | Path) -> None:
    """Write a plan with the writer for the file's suffix, or else as JSON; no partial file is written.

    Raises
    ------
    PartitionerError
        If the writer raises an error or returns neither a text nor bytes, or the file cannot be written.
    """
    writer = entry_for(path, WRITERS, TAKEN)
    if writer is None:
        (plan if plan.workload else replace(plan, workload=workload.name)).save(path)
        return
    write_content(path, _content(writer, plan, workload))


def write_content(path: str | Path, content: str | bytes) -> None:
    """Write a text or bytes to a file; the file holds all of it or stays as it was.

    Raises
    ------
    PartitionerError
        If the file cannot be written.
    """
    if isinstance(content, str):
        write_text(path, content)
    else:
        write_bytes(path, content)


def _content(writer: Writer, plan: Plan, workload: Workload) -> str | bytes:
    try:
        content = writer.content(plan, workload)
    except PartitionerError:
        raise
    except Exception as error:  # the writer of another package may raise any error
        raise PartitionerError(f"writer {writer.name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(content, str | bytes):
        raise PartitionerError(
            f"writer {writer.name} returned a {type(content).__name__}: must be a text or bytes"
        )
    return content
