"""Memory of layers under recomputation, division among devices and types of numbers is that of the papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import partitioner as pt
from partitioner import OptionError
from partitioner.cli.command_line import main
from partitioner.formats.llm.decoder import Attention, DecoderBlock, Dense
from partitioner.formats.llm.memory import kept_of_block, number_bytes
from partitioner.formats.llm.operators import TokenRun, block_operators
from partitioner.formats.llm.parallelism import Parallelism
from tests.instances import write

GIBI = 2**30
GIVEN: dict[str, Any] = {"device": "A100-80", "bandwidth": 25e9, "accelerators": 1}
BF16 = number_bytes("bfloat16", True)
DEGREES = st.sampled_from([1, 2, 4, 8])


def gpt(hidden: int, layers: int, heads: int) -> dict[str, Any]:
    sizes = {"n_embd": hidden, "n_layer": layers, "n_head": heads, "vocab_size": 51200, "n_positions": 2048}
    return {"model_type": "gpt2", "torch_dtype": "bfloat16"} | sizes


def blocks_of(folder: Path, config: dict[str, Any], **options: Any) -> tuple[pt.Graph, list[int]]:
    """Return the graph of a config, and the positions of the forward nodes of its blocks."""
    graph = pt.load_config(write(folder, config, "config.json"), **GIVEN | options).graph
    return graph, [i for i, node in enumerate(graph.ids) if ".h." in str(node) and "/" not in str(node)]


@given(st.integers(1, 64), st.integers(1, 8), DEGREES, DEGREES, st.booleans(), st.booleans())
def test_a_block_keeps_what_equations_1_to_4_of_korthikanti_say(
    s: int, b: int, heads: int, t: int, sequence_parallel: bool, unfused: bool
) -> None:
    """They are sbh (10 + 24/t + 5as/(ht)), tokens divided sbh/t (34 + 5as/h), fully recomputed 2 sbh."""
    a, h = heads * t, 8 * heads * t
    block = DecoderBlock(
        Attention(a // t, a // t, 8, 8, True, True), Dense(4 * h // t, False, True), dropout=True
    )
    run = TokenRun(b, s, scattered=t if sequence_parallel else 1)

    def kept(recompute: str) -> list[float]:
        way = Parallelism(
            t, sequence_parallel, recompute=recompute, attention="unfused" if unfused else "fused"
        )
        return list(kept_of_block(block, h, block_operators(block, h, run), run, way, BF16))

    shared = 10 / t if sequence_parallel else 10
    inputs, scores = s * b * h * (shared + 24 / t), 5 * a * s * s * b / t * unfused
    assert kept("none") == pytest.approx([inputs + scores, 0])
    assert kept("selective") == pytest.approx([inputs, scores])
    checkpoint = 2 * s * b * h / (t if sequence_parallel else 1)
    assert kept("full") == pytest.approx([checkpoint, inputs + scores - checkpoint])


@pytest.mark.parametrize(
    ("recompute", "fused", "dtype", "numbers"),
    [
        ("none", False, "bfloat16", 2 * (2 * 8 + 8 + 12 + 8 + 8 + 3 * 20 + 20)),
        ("none", True, "bfloat16", 2 * (2 * 8 + 8 + 12 + 8 + 8 + 2 * 20 + 20)),
        ("none", True, "float8", 2 * (2 * 8 + 12 + 2 * 20) + 8 + 8 + 8 + 20),
        ("elementwise", False, "bfloat16", 2 * (2 * 8 + 12 + 8 + 2 * 20)),
        # the block's input, what attention gives, and queries, values, the gate's factor, the last product
        ("alternate", False, "bfloat16", 2 * (8 + 8 + (8 + 2 + 20 + 8))),
        ("full", True, "bfloat16", 2 * 8),
    ],
)
def test_gated_networks_and_narrow_factors(recompute: str, fused: bool, dtype: str, numbers: int) -> None:
    """Two norms, the first product with input and result, the next two, both factors, result, product."""
    block = DecoderBlock(Attention(4, 1, 2, 2), Dense(20))
    way = Parallelism(recompute=recompute, fused_gate=fused)
    operators = block_operators(block, 8, TokenRun(1, 1))
    found = kept_of_block(block, 8, operators, TokenRun(1, 1), way, number_bytes(dtype, True))
    assert found.held == numbers


@pytest.mark.parametrize(
    ("hidden", "layers", "heads", "batch", "held", "options", "published"),
    [
        (6144, 48, 64, 4, 1.0, {"attention": "unfused"}, 59.25),
        (6144, 48, 64, 4, 1.0, {"recompute": "selective", "sequence_parallel": True}, 9.5625),
        (6144, 48, 64, 4, 1.0, {"recompute": "full"}, 4.53),
        (20480, 105, 128, 1, 1 + 34 / 105, {"attention": "unfused"}, 114.02),
        (20480, 105, 128, 1, 1 + 34 / 105, {"recompute": "selective", "sequence_parallel": True}, 23.076),
        (20480, 105, 128, 1, 1 + 34 / 105, {"recompute": "full"}, 10.74),
    ],
)
def test_published_activations(
    tmp_path: Path,
    hidden: int,
    layers: int,
    heads: int,
    batch: int,
    held: float,
    options: Any,
    published: float,
) -> None:
    """Korthikanti et al. 2022, Figures 1, 7: eight devices a layer, the first of 35 stages in three parts."""
    graph, blocks = blocks_of(
        tmp_path, gpt(hidden, layers, heads), sequence=2048, batch=batch, tensor=8, **options
    )
    assert graph.parts[3, blocks].sum() * held / GIBI == pytest.approx(published, rel=0.012)


@pytest.mark.parametrize(
    ("hidden", "layers", "stages", "published"), [(6144, 48, 1, 45.5625), (20480, 105, 35, 31.640625)]
)
def test_published_states(tmp_path: Path, hidden: int, layers: int, stages: int, published: float) -> None:
    """Megatron's 18 bytes a parameter: 2 of weights, 4 of gradients, 12 of Adam (Figure 1)."""
    graph, blocks = blocks_of(
        tmp_path, gpt(hidden, layers, 64), sequence=2048, tensor=8, gradient_dtype="float32"
    )
    backward = [i + len(graph) // 2 for i in blocks]
    states = graph.parts[0, blocks].sum() + graph.parts[1:3, backward].sum()
    assert states / stages / GIBI == pytest.approx(published, rel=0.002)


@given(st.integers(0, 3), st.integers(1, 64))
def test_zero_divides_states_among_replicas(zero: int, replicas: int) -> None:
    """Rajbhandari et al. 2020, Figure 1: 2, 2 and 12 bytes, of which the later parts are divided first."""
    way = Parallelism(data_parallel=replicas, zero=zero)
    held = 2 / way.share(zero=3) + 2 / way.share(zero=2) + 12 / way.share(zero=1)
    whole = {0: 16.0, 1: 4 + 12 / replicas, 2: 2 + 14 / replicas, 3: 16 / replicas}
    assert held == pytest.approx(whole[zero])


def test_zero_in_a_graph(tmp_path: Path) -> None:
    """All parts by hand; with the parameters divided, those of a layer and their gradients are gathered."""
    config = gpt(64, 2, 4)
    plain, blocks = blocks_of(tmp_path, config, sequence=8)
    count = plain.extras.nodes[blocks[0]]["parameterCount"]
    assert count == 12 * 64 * 64 + 13 * 64
    found = []
    for zero in range(4):
        graph, _ = blocks_of(tmp_path, config, sequence=8, zero=zero, data_parallel=8)
        first = blocks[0]
        parts = graph.parts[:, first] + graph.parts[:, first + len(graph) // 2]
        found.append((parts / count)[[0, 1, 2, 4]].tolist())
    assert found == [[2, 2, 12, 0], [2, 2, 1.5, 0], [2, 0.25, 1.5, 0], [0.25, 0.25, 1.5, 4]]


@pytest.mark.parametrize(
    ("dtype", "training", "options", "expected"),
    [
        ("bfloat16", True, {}, (2, 2, 2, 2, 12)),
        ("bfloat16", True, {"gradient_dtype": "float32"}, (2, 2, 4, 2, 12)),
        ("float32", True, {}, (4, 4, 4, 4, 8)),
        ("float8", True, {}, (2, 2, 2, 2, 12)),
        ("float8", False, {}, (2, 1, 1, 2, 12)),
        ("int8", False, {"cache_dtype": "float8"}, (2, 1, 1, 1, 12)),
        ("bfloat16", False, {"weight_dtype": "float4"}, (2, 0.5, 0.5, 2, 12)),
        ("bfloat16", True, {"optimizer": "sgd"}, (2, 2, 2, 2, 4)),
        ("float32", True, {"optimizer": "momentum"}, (4, 4, 4, 4, 4)),
        ("bfloat16", True, {"optimizer": "adam_8bit"}, (2, 2, 2, 2, 2)),
        ("bfloat16", True, {"optimizer_bytes": 3}, (2, 2, 2, 2, 3)),
    ],
)
def test_types_of_numbers_by_purpose(
    dtype: str, training: bool, options: dict[str, Any], expected: tuple[float, ...]
) -> None:
    found = number_bytes(dtype, training, **options)
    assert (found.computed, found.weights.block, found.gradients, found.cache, found.optimizer) == expected


@pytest.mark.parametrize("tensor", [2, 4])
def test_a_device_has_its_part_of_a_layer(tmp_path: Path, tensor: int) -> None:
    """Matrices are divided; norms and the biases of what is summed up are not."""
    graph, blocks = blocks_of(tmp_path, gpt(64, 2, 4), sequence=8, tensor=tensor)
    whole = 4 * 64 + 64 + 64
    assert graph.extras.nodes[blocks[0]]["parameterCount"] == (12 * 64 * 64 + 7 * 64) / tensor + whole
    plain, _ = blocks_of(tmp_path, gpt(64, 2, 4), sequence=8)
    assert graph.extras.top["flops_per_sample"] == plain.extras.top["flops_per_sample"]
    assert (graph.cost <= plain.cost / tensor * (1 + 1e-12)).all()


def test_sequences_divided_among_devices(tmp_path: Path) -> None:
    """Of two devices each has half of the tokens, and half of the pairs of tokens."""
    config = gpt(64, 2, 4)
    one, blocks = blocks_of(tmp_path, config, sequence=16)
    two, _ = blocks_of(tmp_path, config, sequence=16, context_parallel=2)
    flops = [graph.extras.nodes[blocks[0]]["flops"] for graph in (one, two)]
    assert flops[1] == flops[0] / 2
    assert two.parts[3, blocks] == pytest.approx(one.parts[3, blocks] / 2)
    assert two.extras.top["tokens_per_sample"] == 16


def test_experts_divided_among_devices(tmp_path: Path) -> None:
    config = {"model_type": "mixtral", "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1}
    config |= {"num_attention_heads": 4, "num_local_experts": 8, "num_experts_per_tok": 2, "vocab_size": 10}
    path = write(tmp_path, config, "config.json")
    one, four = (
        pt.load_config(path, sequence=64, expert_parallel=e, **GIVEN).graph.extras.nodes[1] for e in (1, 4)
    )
    assert one["parameterCount"] - four["parameterCount"] == 6 * 3 * 32 * 48
    assert four["flops"] == one["flops"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tensor": 3}, "tensor = 3: must divide the 4 attention heads of a layer"),
        ({"tensor": 0}, "tensor = 0: must be an integer of at least 1"),
        ({"zero": 4}, "zero = 4: must be an integer from 0 to 3"),
        ({"recompute": "all"}, "recompute = 'all': must be one of none, selective"),
        ({"attention": "flash"}, "attention = 'flash': must be one of fused, unfused"),
        ({"sequence_parallel": 1}, "sequence_parallel = 1: must be True or False"),
        ({"cache_dtype": "fp8"}, "cache_dtype = 'fp8': must be one of"),
        ({"optimizer": "lion"}, "optimizer = 'lion': must be one of adam"),
        ({"optimizer": "sgd", "optimizer_bytes": 4}, "optimizer and optimizer_bytes say the same"),
        ({"tensors": 2}, "tensors = 2: means nothing to a model's config"),
    ],
)
def test_options_out_of_range(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        blocks_of(tmp_path, gpt(64, 2, 4), sequence=8, **options)


def test_the_command_line_takes_a_layout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, gpt(64, 2, 4), "config.json"))
    fixed = ["--sequence", "8", "--device", "A100-80", "--bandwidth", "25e9", "--accelerators", "1"]
    given = ["--tensor", "2", "--recompute-layers", "full", "--gradient-dtype", "float32", "--zero", "1"]
    assert main(["solve", path, *fixed, *given, "--data-parallel", "4", "--schedule", "1f1b"]) == 0
    layout: dict[str, Any] = {"tensor": 2, "recompute": "full", "gradient_dtype": "float32"}
    workload = pt.load_config(path, sequence=8, zero=1, data_parallel=4, **GIVEN | layout)
    value = pt.solve(workload.graph, workload.devices, schedule="1f1b").value
    assert f"{value:.5g}"[:4] in capsys.readouterr().out
