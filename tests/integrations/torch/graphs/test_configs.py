"""A config's parameters, FLOPs and activations are those of the graph of the same model written in torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.integrations.torch import graph_of

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from tests.integrations.torch.llama import Llama  # noqa: E402
from tests.integrations.torch.mixture import Routed  # noqa: E402
from tests.integrations.torch.models import Gpt  # noqa: E402

WIDTH, HEADS, GROUPS, INNER, BLOCKS, WORDS = 256, 4, 2, 704, 3, 500
EXPERTS, TOP = 4, 2
LLAMA = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": GROUPS,
    "intermediate_size": INNER,
    "num_hidden_layers": BLOCKS,
    "vocab_size": WORDS,
    "tie_word_embeddings": False,
}
MIXTRAL = LLAMA | {"num_local_experts": EXPERTS, "num_experts_per_tok": TOP}
GPT = {"n_embd": WIDTH, "n_head": 4, "n_layer": BLOCKS, "vocab_size": WORDS, "n_positions": 16}
GPT["resid_pdrop"] = 0


def llama() -> Any:
    return Llama(WIDTH, HEADS, GROUPS, INNER, BLOCKS, WORDS)


def mixtral() -> Any:
    model = llama()
    for block in model.model.layers:
        block.mlp = Routed(WIDTH, INNER, EXPERTS, TOP)
    return model


def gpt() -> Any:
    return Gpt(BLOCKS, WIDTH, WORDS)


CASES = {
    "llama": (llama, LLAMA, 128),
    "mixtral": (mixtral, MIXTRAL, 128),
    "gpt2": (gpt, GPT, 16),
}


def score(output: Any, tokens: Any) -> Any:
    """The loss, without the function that torch cannot differentiate on the device ``"meta"``."""
    return -output.log_softmax(-1).gather(-1, tokens[..., None]).mean()


def of_torch(build: Any, tokens: int, where: str) -> pt.Graph:
    with torch.device(where):
        model, args = build().to(torch.bfloat16), (torch.zeros(1, tokens, dtype=torch.long),)
    return graph_of(model, args, device="H100", bandwidth=1e9, training=True, loss=score, targets=args)


def of_config(fields: dict[str, Any], family: str, tokens: int, folder: Path) -> pt.Graph:
    path = folder / "config.json"
    path.write_text(json.dumps({"model_type": family, "torch_dtype": "bfloat16"} | fields))
    return pt.load_config(path, sequence=tokens, device="H100", bandwidth=1e9, accelerators=1).graph


def flops(graph: pt.Graph) -> float:
    nodes = zip(graph.extras.nodes, graph.backward.tolist(), strict=True)
    return float(sum(node.get("flops", 0) for node, backward in nodes if not backward))


def kept(graph: pt.Graph) -> dict[str, float]:
    return dict(zip(map(str, graph.names), graph.parts[3].tolist(), strict=True))


def kept_by_kernels(build: Any, tokens: int) -> float:
    """What is kept with the kernels of an accelerator.

    Attention on a CPU keeps no scores, as on an accelerator, but without data it does; norms without data
    are one kernel, as on an accelerator, but not on a CPU.
    """
    here, nowhere = (kept(of_torch(build, tokens, where)) for where in ("cpu", "meta"))
    return sum(nowhere[name] if "norm" in name else nbytes for name, nbytes in here.items() if nbytes)


@pytest.mark.parametrize("family", CASES)
def test_parameters_are_equal(family: str, tmp_path: Path) -> None:
    build, fields, _ = CASES[family]
    own = sum(parameter.numel() for parameter in build().parameters())
    found = of_config(fields, family, 8, tmp_path)
    again = WORDS * WIDTH if family == "gpt2" else 0  # both hold the weights that they share
    assert found.parts[0].sum() == 2 * (own + again)


@pytest.mark.parametrize("family", CASES)
def test_flops_differ_by_the_scores_that_are_masked(family: str, tmp_path: Path) -> None:
    """Torch's counter counts all pairs of tokens, the config only those that a causal mask leaves."""
    build, fields, tokens = CASES[family]
    masked = BLOCKS * 4 * WIDTH * (tokens * tokens - tokens * (tokens + 1) // 2)
    expected = flops(of_torch(build, tokens, "meta"))
    assert flops(of_config(fields, family, tokens, tmp_path)) + masked == expected


@pytest.mark.parametrize("family", CASES)
def test_activations_are_what_autograd_keeps(family: str, tmp_path: Path) -> None:
    build, fields, tokens = CASES[family]
    found = of_config(fields, family, tokens, tmp_path).parts[3].sum()
    assert found / kept_by_kernels(build, tokens) == pytest.approx(1, abs=0.02)
