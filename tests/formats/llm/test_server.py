"""What a server's largest batch takes is what vLLM printed, and is counted in place of activations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner import OptionError
from partitioner.formats.llm.server import runtime_bytes
from tests.formats.llm.published import MODELS
from tests.instances import write

LLAMA = MODELS["Llama-3.1-8B"].config
GIVEN: dict[str, Any] = {
    "sequence": 15,
    "device": "H100",
    "bandwidth": 25e9,
    "training": False,
    "generate": 1,
}
GIB = 2**30


def served(folder: Path, **options: Any) -> pt.Workload:
    return pt.load_config(write(folder, LLAMA, "config.json"), **GIVEN | options)


def test_the_peak_is_that_of_sampling_or_of_a_network(tmp_path: Path) -> None:
    """256 sequences: 1.26 GiB (vllm-project/vllm#10511); 20,000 tokens by hand."""
    graph = served(tmp_path, profile_tokens=20_000, profile_sequences=256).graph
    peak = dict(zip(graph.ids, (graph.parts[4] - runtime_bytes(1)).tolist(), strict=True))
    assert peak["lm_head"] / GIB == pytest.approx(1.26, rel=0.01)
    assert peak["model.layers.7"] == 20_000 * 2 * (3 * 4096 + 3 * 14336)
    assert peak["model.embed_tokens"] == peak["model.norm"] == 0
    assert not graph.parts[3].any()


@pytest.mark.parametrize(
    ("total", "part", "tokens", "blocks"), [(79.14, 0.9, 8192, 28124), (23.58, 0.9, 20_000, 1952)]
)
def test_blocks_that_vllm_printed(
    tmp_path: Path, total: float, part: float, tokens: int, blocks: int
) -> None:
    """On one device, of 16 tokens each, within 5 % (vllm-project/vllm#10517 and a log)."""
    workload = served(tmp_path, memory=total * part * GIB, profile_tokens=tokens, profile_sequences=256)
    plan = pt.solve(workload.graph, workload.devices, "capacity", schedule="inference")
    assert plan.value == pytest.approx(blocks, rel=0.05)


def test_devices_that_divide_layers_gather_all_logits(tmp_path: Path) -> None:
    """The sampler has the whole vocabulary on one of them; networks are divided."""
    one, two = (
        served(tmp_path, profile_tokens=4096, profile_sequences=64, tensor=t).graph.parts[4]
        - runtime_bytes(t)
        for t in (1, 2)
    )
    assert two[-1] == one[-1]
    assert two[1] == 4096 * 2 * (3 * 4096 + 3 * 14336 / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"profile_tokens": 8}, "profile_sequences = None: must be an integer of at least 1"),
        ({"profile_tokens": 0, "profile_sequences": 1}, "profile_tokens = 0: must be an integer"),
        ({"profile_tokens": 8, "profile_sequences": 1, "generate": None}, "profile_tokens = 8: needs the"),
    ],
)
def test_a_batch_that_is_not_given_whole(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        served(tmp_path, **options)
