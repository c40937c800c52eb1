"""Configs give the parameters that the models' publishers state, each layer the memory and cache it has."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from partitioner import Workload, load_config
from tests.formats.llm.published import DEEPSEEK_V3, LLAMA_70B, MODELS, Published
from tests.instances import write

LINK = 50e9
EMBEDDINGS = {
    "model.embed_tokens",
    "transformer.wte",
    "transformer.word_embeddings",
    "gpt_neox.embed_in",
    "model.decoder.embed_tokens",
}
HEADS = {"lm_head", "embed_out"}
FAST = 5.0  # seconds for the graph of a model of 70 billion parameters


def loaded(folder: Path, config: dict[str, Any], **options: Any) -> Workload:
    """The workload of a config, by default one sequence of one token, for inference in bfloat16."""
    path = write(folder, config, "config.json")
    given: dict[str, Any] = {
        "sequence": 1,
        "device": "H100",
        "bandwidth": LINK,
        "training": False,
        "dtype": "bfloat16",
    }
    return load_config(path, **given | options)


def counts(workload: Workload) -> dict[str, float]:
    """The parameters of each layer, from their bytes."""
    graph = workload.graph
    labels = [graph.layer_labels[layer] for layer in graph.layer.tolist()]
    return dict(zip(map(str, labels), (graph.parts[0] / 2).tolist(), strict=True))


def is_tied(workload: Workload) -> bool:
    return any("sharedParameters" in extra for extra in workload.graph.extras.nodes)


@pytest.mark.parametrize("name", MODELS)
def test_parameters_are_those_that_the_publisher_states(tmp_path: Path, name: str) -> None:
    model: Published = MODELS[name]
    workload = loaded(tmp_path, model.config)
    found = counts(workload)
    embedding = sum(found[layer] for layer in found.keys() & EMBEDDINGS)
    head = sum(found[layer] for layer in found.keys() & HEADS)
    total = sum(found.values()) - (embedding if is_tied(workload) else 0)
    assert model.total or model.inner
    if model.total:
        assert total == pytest.approx(model.total, rel=model.tolerance)
    if model.inner:
        assert sum(found.values()) - embedding - head == pytest.approx(model.inner, rel=model.tolerance)
    if model.active:
        flops = sum(extra["flops"] for extra in workload.graph.extras.nodes)
        assert flops / 2 + embedding == pytest.approx(model.active, rel=model.tolerance)


def test_there_are_twelve_models_of_six_families() -> None:
    assert len(MODELS) >= 12
    assert len({model.config["model_type"] for model in MODELS.values()}) >= 6


def test_the_predictor_of_deepseek_v3_holds_embedding_and_head_too(tmp_path: Path) -> None:
    """The publisher counts 671 billion parameters, 36.7 for a token; 685 with the predictor's copies."""
    plain = loaded(tmp_path, DEEPSEEK_V3)
    assert "model.layers.61" not in counts(plain) and not is_tied(plain)
    used = sum(extra["flops"] for extra in plain.graph.extras.nodes) / 2
    assert used == pytest.approx(36.7e9, rel=0.005)
    whole = loaded(tmp_path, DEEPSEEK_V3, predictors=True)
    assert sum(counts(whole).values()) == pytest.approx(685e9, rel=0.005)
    shared = dict(zip(counts(whole), whole.graph.extras.nodes, strict=True))
    assert shared["model.embed_tokens"]["sharedParameters"] == ["model.embed_tokens.weight"]
    assert shared["lm_head"]["sharedParameters"] == ["lm_head.weight"]
    both = ["model.embed_tokens.weight", "lm_head.weight"]
    assert shared["model.layers.61"]["sharedParameters"] == both
    assert "model.layers.61" in loaded(tmp_path, DEEPSEEK_V3, training=True, memory="300GB").graph.ids


def test_falcon_by_hand(tmp_path: Path) -> None:
    """A block of Falcon-7B: 4544 * (4544 + 2 * 64) and 4544^2 for attention, 8 * 4544^2, a norm."""
    config = {"model_type": "falcon", "hidden_size": 4544, "n_layer": 32, "n_head": 71, "vocab_size": 65024}
    found = counts(loaded(tmp_path, config | {"multi_query": True, "parallel_attn": True, "bias": False}))
    assert found["transformer.h.7"] == 4544 * (4544 + 128) + 9 * 4544**2 + 2 * 4544
    assert found["lm_head"] == found["transformer.word_embeddings"] == 65024 * 4544
    later = config | {"new_decoder_architecture": True, "num_kv_heads": 8, "hidden_size": 8192, "n_head": 128}
    block = counts(loaded(tmp_path, later))["transformer.h.0"]
    assert block == 8192 * (8192 + 2 * 8 * 64) + 9 * 8192**2 + 2 * 2 * 8192


def test_opt_with_narrow_embeddings_by_hand(tmp_path: Path) -> None:
    """OPT-350M embeds in 512 numbers, projects them to 1024 and back, and has no last norm."""
    config = {"model_type": "opt", "hidden_size": 1024, "ffn_dim": 4096, "num_hidden_layers": 24}
    config |= {"num_attention_heads": 16, "max_position_embeddings": 2048, "vocab_size": 50272}
    found = counts(loaded(tmp_path, config | {"word_embed_proj_dim": 512, "do_layer_norm_before": False}))
    assert found["model.decoder.project_in"] == found["model.decoder.project_out"] == 512 * 1024
    assert found["model.decoder.embed_positions"] == 2050 * 1024
    assert found["lm_head"] == 50272 * 512 and "model.decoder.final_layer_norm" not in found


def test_cache_and_memory_of_llama_70b(tmp_path: Path) -> None:
    """8 heads of 128 keys and as many values, 2 bytes each; training keeps 16 bytes of a parameter."""
    served = loaded(tmp_path, LLAMA_70B, sequence=1, context=4095, batch=3)
    node = served.graph.position["model.layers.5"]
    assert served.graph.extras.nodes[node]["cachePerToken"] == 8 * 128 * 2 * 2
    assert served.graph.size[node] == 3 * 4096 * 8 * 128 * 2 * 2
    trained = loaded(tmp_path, LLAMA_70B, sequence=512, training=True).graph
    assert trained.parts[:3].sum() == pytest.approx(16 * 70_553_706_496)
    assert (trained.size == 0).all() and trained.parts[3].sum() > 0
    assert [served.devices.kinds[0].memory, served.devices.kinds[0].count] == [80e9, 1]
    latent = loaded(tmp_path, DEEPSEEK_V3)
    assert latent.graph.extras.nodes[4]["cachePerToken"] == (512 + 64) * 2


def test_a_config_of_70_billion_is_read_in_seconds(tmp_path: Path) -> None:
    start = time.perf_counter()
    graph = loaded(tmp_path, LLAMA_70B, sequence=4096, training=True).graph
    assert time.perf_counter() - start < FAST
    assert len(graph) == 2 * (80 + 3)
