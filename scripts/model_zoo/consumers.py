"""Plans of a model's blocks, written for every tool that can express one and read by the tool's own rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.pipelining import SplitPoint, pipeline

import partitioner as pt
from model_zoo.models import Call
from partitioner.exports.writers import TARGETS

DEVICES = 2


def read_back(call: Call, graph: Any) -> Iterator[str]:
    """Yield the names of the tools that take a plan of the graph.

    Raises
    ------
    AssertionError
        If a tool does not read what was written for it.
    """
    devices = pt.Devices.accelerated(DEVICES)
    for name, target in TARGETS.items():
        split = "free" if target.free else "chain"
        try:
            plan = pt.solve(graph, devices, split=split, constraints=pt.expressible(name), time_limit=3)
            text = pt.export(pt.Workload(graph, devices), plan, name)
        except pt.ExportError:
            continue
        assert isinstance(text, str)
        said = READERS.get(name, _parsed)(call, text, len(set(plan.placement.values())))
        yield f"{name}{said}"


def _parsed(_call: Call, text: str, stages: int) -> str:
    """Return that a text is not empty."""
    assert text and stages
    return ""


def _counts(_call: Call, text: str, stages: int) -> str:
    """Read the layers of each rank of a server."""
    (line,) = [one for one in text.splitlines() if not one.startswith("#")]
    counts = [int(one) for one in line.partition("=")[2].split(",")]
    assert len(counts) == stages and sum(counts) > 0
    return ""


def _bounds(_call: Call, text: str, stages: int) -> str:
    """Read DeepSpeed's bounds."""
    found = json.loads(text)
    assert len(found["parts"]) == stages + 1 and found["parts"][-1] == len(found["layers"])
    return ""


def _layout(_call: Call, text: str, stages: int) -> str:
    """Read Megatron's layout."""
    assert len(json.loads(text)["pipeline_model_parallel_layout"].split("|")) == stages
    return ""


def _device_map(call: Call, text: str, _stages: int) -> str:
    """Let accelerate find every parameter of the model in its map."""
    from accelerate.utils.modeling import check_device_map

    check_device_map(call.model, json.loads(text)["device_map"])
    return ""


def _split_points(call: Call, text: str, stages: int) -> str:
    """Let torch's front end cut the model, if it can run it uncut, and compare what the pieces compute."""
    args, kwargs = call.args, dict(call.kwargs)
    try:
        pipeline(call.model, args, kwargs)(*args, **kwargs)
    except Exception:  # whatever the front end raises for a model that it does not take uncut
        return " (its front end refuses the model)"
    spec = dict.fromkeys(json.loads(text)["split_points"], SplitPoint.BEGINNING)
    cut = pipeline(call.model, args, kwargs, split_spec=spec)
    assert cut.num_stages == stages
    found, expected = (torch.utils._pytree.tree_leaves(one(*args, **kwargs)) for one in (cut, call.model))
    pairs = zip(found, [one for one in expected if isinstance(one, torch.Tensor)], strict=False)
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in pairs)
    return ""


READERS = {
    "torch": _split_points,
    "megatron": _layout,
    "deepspeed": _bounds,
    "vllm": _counts,
    "sglang": _counts,
    "accelerate": _device_map,
}
