"""What devices that divide a layer exchange, and how long it takes, is what the papers' formulas say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import partitioner as pt
from partitioner.estimation import Collective, named_device, operation_time
from partitioner.formats.hugging_face import decoder_of
from partitioner.formats.llm.collectives import Links, exchanges_of_block, gathered_states
from partitioner.formats.llm.decoder import Attention, DecoderBlock, Dense, Experts
from partitioner.formats.llm.memory import number_bytes
from partitioner.formats.llm.operators import TokenRun
from partitioner.formats.llm.parallelism import Parallelism
from tests.instances import write

DENSE = DecoderBlock(Attention(8, 2, 16, 16), Dense(64))
MIXED = DecoderBlock(Attention(8, 2, 16, 16), Experts(8, 2, 32))
NUMBERS = number_bytes("bfloat16", True)
GPT = {
    "model_type": "gpt2",
    "n_embd": 1024,
    "n_layer": 3,
    "n_head": 16,
    "vocab_size": 2048,
    "n_positions": 512,
}
GIVEN: dict[str, Any] = {
    "sequence": 512,
    "batch": 4,
    "device": "A100-80",
    "bandwidth": 25e9,
    "accelerators": 1,
}


def sent(collectives: tuple[Collective, ...]) -> float:
    """The bytes that a device sends."""
    return float(sum(one.sent for one in collectives))


@given(st.sampled_from([2, 4, 8]), st.integers(1, 4), st.integers(1, 64), st.booleans(), st.booleans())
def test_tensor_parallel_blocks_sum_up_twice_a_pass(
    t: int, b: int, s: int, divided: bool, full: bool
) -> None:
    """A ring sends 2 (t - 1) / t of b s h numbers of two bytes, in two steps or in one (Megatron-LM)."""
    way = Parallelism(t, divided, recompute="full" if full else "none")
    found = exchanges_of_block(DENSE, 128, TokenRun(b, s), way, NUMBERS)
    once = 2 * 2 * (t - 1) / t * b * s * 128 * 2
    assert sent(found.forward) == pytest.approx(once)
    assert sent(found.backward) == pytest.approx(once * (1 + full))
    assert {one.name for one in found.forward} == (
        {"reduce_scatter", "all_gather"} if divided else {"all_reduce"}
    )


def test_blocks_with_one_norm_sum_up_once() -> None:
    one = DecoderBlock(DENSE.attention, DENSE.network, norms=1)
    both = [exchanges_of_block(each, 128, TokenRun(1, 8), Parallelism(4), NUMBERS) for each in (one, DENSE)]
    assert sent(both[1].forward) == 2 * sent(both[0].forward)


@given(st.sampled_from([2, 4]), st.integers(1, 4))
def test_divided_sequences_gather_keys_and_values(c: int, b: int) -> None:
    """Each device gathers 2 kv heads of 16 and 16 numbers of all tokens, and sums up their gradients."""
    run, way = TokenRun(b, 64, 0, c), Parallelism(context_parallel=c)
    found = exchanges_of_block(DENSE, 128, run, way, NUMBERS)
    gathered = (c - 1) / c * b * 64 * 2 * (16 + 16) * 2
    assert [sent(found.forward), sent(found.backward)] == pytest.approx([gathered, 2 * gathered])


def test_divided_experts_send_tokens_there_and_back() -> None:
    """Two experts a token: 2 x 2 (e - 1) / e of its hidden states."""
    found = exchanges_of_block(MIXED, 128, TokenRun(2, 8), Parallelism(expert_parallel=4), NUMBERS)
    assert sent(found.forward) == sent(found.backward) == 2 * 2 * 3 / 4 * 16 * 128 * 2


@pytest.mark.parametrize(
    ("e", "tensor", "reach", "copies"),
    [(8, 1, 4, 8), (16, 1, 4, 2), (64, 1, 4, 4), (64, 1, None, 8), (128, 1, None, 8), (8, 4, None, 4)],
)
def test_kernels_that_overlap_send_a_token_once_to_a_server(
    e: int, tensor: int, reach: int | None, copies: int
) -> None:
    """Eight experts a token, of any servers or of those that its router reaches; within one, to each."""
    block, run = DecoderBlock(DENSE.attention, Experts(128, 8, 32, reach=reach)), TokenRun(1, 16)
    for overlapped, each in ((True, copies), (False, 8)):
        way = Parallelism(tensor, expert_parallel=e, overlapped=overlapped)
        alone = exchanges_of_block(DENSE, 128, run, way, NUMBERS)
        found = exchanges_of_block(block, 128, run, way, NUMBERS)
        routed = sent(found.forward) - sent(alone.forward)
        assert routed == pytest.approx(2 * each * (e - 1) / e * 16 * 128 * 2)


def test_the_router_reaches_the_groups_of_a_config() -> None:
    """DeepSeek-V3 has eight groups, of which a token reaches four; GLM-4.5 has one."""
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}
    sizes |= {"n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    config = {"model_type": "glm4_moe", "num_key_value_heads": 4, "intermediate_size": 128} | sizes
    for groups, reach in ((8, 4), (1, None)):
        made = decoder_of(config | {"n_group": groups, "topk_group": 4}, "config")
        networks = [block.network for block in made.blocks]
        assert [each.reach for each in networks if isinstance(each, Experts)] == [reach, reach]


@given(st.integers(2, 8), st.floats(1.0, 1e9), st.floats(1.0, 1e9))
def test_divided_parameters_are_gathered_in_both_passes(replicas: int, stored: float, grads: float) -> None:
    """ZeRO-3 sends (n - 1) / n of the parameters twice and of the gradients once."""
    found = gathered_states(stored, grads, Parallelism(zero=3, data_parallel=replicas))
    part = (replicas - 1) / replicas
    assert sent(found.forward) == pytest.approx(part * stored)
    assert sent(found.backward) == pytest.approx(part * (stored + grads))
    assert gathered_states(stored, grads, Parallelism(zero=2, data_parallel=replicas)).forward == ()


@pytest.mark.parametrize(("replicas", "experts", "alike"), [(8, 2, 4), (8, 8, 1), (4, 8, 0)])
def test_experts_are_gathered_among_the_replicas_that_hold_them(
    replicas: int, experts: int, alike: int
) -> None:
    """Of n replicas that divide experts by e, n / e hold the same ones, and divide these alone."""
    found = gathered_states(
        1e9, 5e8, Parallelism(zero=3, data_parallel=replicas, expert_parallel=experts), routed=0.75
    )
    own, rest = (alike - 1) / alike if alike else 0.0, (replicas - 1) / replicas
    assert sent(found.forward) == pytest.approx((0.25 * rest + 0.75 * own) * 1e9)
    assert sent(found.backward) == pytest.approx((0.25 * rest + 0.75 * own) * 1.5e9)


def test_large_groups_exchange_between_servers() -> None:
    links = Links(named_device("A100-80"), 25e9)
    assert links.time((Collective("all_reduce", 16, 1e9),)) == pytest.approx(2 * 15 / 16 * 1e9 / 25e9 * 1e3)
    within = Collective("all_reduce", 8, 1e9)
    assert links.time((within, within)) == pytest.approx(2 * float(operation_time("A100-80", within)))


def test_times_of_layers_have_their_exchanges(tmp_path: Path) -> None:
    """A block of a graph: compute of both kinds of layouts is the same, and the exchange is added once."""
    path = write(tmp_path, GPT, "config.json")
    plain, beside = (
        pt.load_config(path, tensor=4, overlapped=overlapped, **GIVEN).graph for overlapped in (False, True)
    )
    states = 4 * 512 * 1024 * 2
    reduced = 2 * float(operation_time("A100-80", Collective("all_reduce", 4, states)))
    i = plain.position["transformer.h.1"]
    assert plain.extras.nodes[i]["collectiveTime"] == pytest.approx(2 * reduced)
    compute = plain.time[0, i] - reduced
    assert beside.time[0, i] == pytest.approx(max(compute, reduced))


def test_an_update_is_paid_once_a_batch(tmp_path: Path) -> None:
    """4 bytes of gradients, 2 x 12 of states, 2 of the parameter; 2 x 4 + 2 to add up, or 2 x 4 - 2."""
    path = write(tmp_path, GPT, "config.json")

    def backward(microbatches: int, **options: Any) -> float:
        graph = pt.load_config(
            path, microbatches=microbatches, gradient_dtype="float32", **GIVEN, **options
        ).graph
        return float(graph.time[0, graph.position["transformer.h.1/backward"]])

    one, many, fused = backward(1), backward(10**9), backward(10**9, fused_gradients=True)
    count = 12 * 1024**2 + 13 * 1024
    byte = 1e3 / 2039e9 / 0.8
    assert one - many == pytest.approx(count * byte * (4 + 24 + 2 - 10), rel=0.01)
    assert many - fused == pytest.approx(count * byte * 4, rel=0.01)
    assert backward(1, zero=1, data_parallel=30) < one - count * byte * 28
