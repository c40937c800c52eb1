"""A layer's time is the sum over what a device runs for it, counted here from the sizes of a block."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner.estimation import (
    AttentionScores,
    ExpertProducts,
    Product,
    Traffic,
    named_device,
    operation_time,
    unfused_attention,
)
from partitioner.formats.llm.decoder import Attention, DecoderBlock, Dense, Experts, Latent
from partitioner.formats.llm.memory import number_bytes
from partitioner.formats.llm.model import Setting
from partitioner.formats.llm.operators import TokenRun, block_operators, product
from partitioner.formats.llm.parallelism import Parallelism
from partitioner.formats.llm.times import SUSTAINED, PassTimes, casts, pass_times, update_times
from partitioner.workload.training_states import RECOMPUTE

HIDDEN, SEQUENCE, BATCH = 1024, 512, 2
TOKENS = BATCH * SEQUENCE
BLOCK = DecoderBlock(Attention(16, 16, 64, 64, rotary=False), Dense(4096, gated=False), dropout=True)
PRODUCTS = [(3 * HIDDEN, HIDDEN), (HIDDEN, HIDDEN), (4096, HIDDEN), (HIDDEN, 4096)]  # columns, inner numbers
SCORES = AttentionScores(BATCH, SEQUENCE, 0, 16, 16, 64, 64)
# two norms, an activation, and two sums with a residual, of which dropout writes a mask of a byte each
ELEMENTWISE = [2 * TOKENS * HIDDEN] * 2 + [2 * TOKENS * 4096] + [3.5 * TOKENS * HIDDEN] * 2
GRADIENTS = [3 * TOKENS * HIDDEN] * 2 + [3 * TOKENS * 4096] + [5.5 * TOKENS * HIDDEN] * 2


def timed(block: DecoderBlock, run: TokenRun, training: bool = True, **layout: object) -> PassTimes:
    """The times of a block on an A100."""
    numbers = number_bytes("bfloat16", training)
    parallelism = Parallelism(**layout)  # type: ignore[arg-type]
    setting = Setting(
        run, named_device("A100-80"), "bfloat16", None, training, numbers, parallelism=parallelism
    )
    return pass_times(block_operators(block, HIDDEN, run), setting, block, HIDDEN)


def of(*operations: object) -> float:
    """The time of some operations one after the other."""
    return sum(float(operation_time("A100-80", one)) for one in operations)  # type: ignore[arg-type, misc]


def expected(attention: str) -> tuple[float, float, float, float, float]:
    """Forward products, scores and traffic; backward products and all else."""
    kernels = unfused_attention(SCORES) if attention == "unfused" else (SCORES,)
    forward = of(*[Product(TOKENS, n, k) for n, k in PRODUCTS])
    backward = of(
        *[Product(TOKENS, k, n) for n, k in PRODUCTS], *[Product(k, n, TOKENS) for n, k in PRODUCTS]
    )
    rest = of(*[back for one in kernels for back in one.backward()], *map(Traffic, GRADIENTS))
    return forward, of(*kernels), of(*map(Traffic, ELEMENTWISE)), backward, rest


@pytest.mark.parametrize("attention", ["fused", "unfused"])
@pytest.mark.parametrize("recompute", RECOMPUTE)
def test_a_block_takes_the_sum_of_its_operations(attention: str, recompute: str) -> None:
    products, scores, traffic, backward, rest = expected(attention)
    again = {
        "none": 0.0,
        "selective": scores,
        "elementwise": of(*map(Traffic, ELEMENTWISE)),
        "alternate": of(*map(Traffic, ELEMENTWISE), *[Product(TOKENS, n, HIDDEN) for n in (1024, 1024)])
        + of(Product(TOKENS, HIDDEN, 4096)),  # keys, the output of attention, the network's last
        "full": products + scores + traffic,
    }[recompute]
    found = timed(BLOCK, TokenRun(BATCH, SEQUENCE), attention=attention, recompute=recompute)
    assert found.forward == pytest.approx(SUSTAINED * (products + scores + traffic))
    if recompute not in ("elementwise", "alternate") or attention == "fused":
        assert found.backward == pytest.approx(SUSTAINED * (backward + rest + again))


def test_a_gated_rotary_block_without_training_has_no_backward_pass_and_no_mask() -> None:
    block = DecoderBlock(Attention(16, 4, 64, 64), Dense(2048))
    found = timed(block, TokenRun(BATCH, SEQUENCE), training=False)
    turned = 2 * TOKENS * (16 + 4) * 64
    added_and_normed = [4 * TOKENS * HIDDEN] * 2  # by one kernel each
    passed = [*added_and_normed, turned, TOKENS * 3 * 2048]
    products = [(1024 + 512, HIDDEN), (HIDDEN, 1024), (4096, HIDDEN), (HIDDEN, 2048)]
    scores = AttentionScores(BATCH, SEQUENCE, 0, 16, 4, 64, 64)
    total = of(*[Product(TOKENS, n, k) for n, k in products], scores, *map(Traffic, passed))
    assert found.forward == pytest.approx(total)
    assert found.backward == 0


def test_experts_are_timed_together() -> None:
    mixture = DecoderBlock(Attention(16, 16, 64, 64), Experts(8, 2, 512))
    dense = DecoderBlock(Attention(16, 16, 64, 64), Dense(512))
    run = TokenRun(BATCH, SEQUENCE)
    more = timed(mixture, run, False).forward - timed(dense, run, False).forward
    routed = of(ExpertProducts(2 * TOKENS, 8, HIDDEN, 512), Product(TOKENS, 8, HIDDEN))  # activation included
    own = of(Product(TOKENS, 1024, HIDDEN), Product(TOKENS, HIDDEN, 512), Traffic(TOKENS * 3 * 512))
    assert more == pytest.approx(routed - own)


@given(st.integers(1, 64), st.integers(1, 8), st.sampled_from([None, "balanced", "power_law"]), st.booleans())
def test_training_balances_its_experts(count: int, top: int, routing: str | None, training: bool) -> None:
    """Against the same block with a network that takes no time in place of the experts' products."""
    top = min(top, count)
    run = TokenRun(BATCH, SEQUENCE)
    block = DecoderBlock(Attention(16, 16, 64, 64), Experts(count, top, 512))
    setting = Setting(
        run, named_device("H100"), "bfloat16", None, training, number_bytes("bfloat16", training),
        parallelism=Parallelism(routing=routing),
    )  # fmt: skip
    operators = block_operators(block, HIDDEN, run)
    routed = [any(isinstance(each, ExpertProducts) for each in one.runs) for one in operators]
    without = [replace(one, runs=()) if own else one for one, own in zip(operators, routed, strict=True)]
    word = routing or ("balanced" if training else "power_law")
    products = ExpertProducts(top * TOKENS, count, HIDDEN, 512, routing=word)
    one = float(operation_time("H100", products)) * (SUSTAINED if training else 1)
    more, less = (pass_times(each, setting, block, HIDDEN) for each in (operators, without))
    assert more.forward - less.forward == pytest.approx(one, rel=1e-6)
    assert more.backward - less.backward == pytest.approx(2 * one * training, rel=1e-6)


def test_a_new_token_reads_latent_keys_and_values_once() -> None:
    """Of DeepSeek's cache of 576 numbers a token, not of 128 heads of keys and values."""
    attention = Attention(128, 128, 192, 128, latent=Latent(1536, 512, 64))
    block = DecoderBlock(attention, Dense(64))
    [scores] = [
        run
        for one in block_operators(block, HIDDEN, TokenRun(4, 1, 999))
        for run in one.runs
        if isinstance(run, AttentionScores)
    ]
    own = 128 * (576 + 512)
    assert scores.nbytes(2, 2) == 4 * 2 * (1000 * 576 + own)
    assert scores.flops == 4 * 1000 * 2 * own


SIZE = st.integers(1, 64)


def narrow(dtype: str = "float8", **layout: object) -> Setting:
    """Training with products in one byte on an H100."""
    numbers, parallelism = number_bytes(dtype, True), Parallelism(**layout)  # type: ignore[arg-type]
    run = TokenRun(BATCH, SEQUENCE)
    return Setting(run, named_device("H100"), dtype, None, True, numbers, parallelism=parallelism)


@given(SIZE, SIZE, SIZE, SIZE, SIZE, st.booleans(), st.booleans())
def test_factors_of_one_byte_are_cast(
    heads: int, kv: int, key: int, value: int, width: int, gated: bool, block: bool
) -> None:
    """Each input and each gradient is read twice (once with factors by group) and written twice in one byte.

    Against the sum over the products by hand: queries, keys and values together, output, up, down.
    """
    attention = Attention(heads, kv, key, value)
    shape = DecoderBlock(attention, Dense(width, gated=gated))
    entered = heads * key + kv * (key + value)
    sizes = [
        (HIDDEN, entered), (heads * value, HIDDEN), (HIDDEN, width * (1 + gated)), (width, HIDDEN),
    ]  # fmt: skip
    setting = narrow("float8_block" if block else "float8")
    runs = [run for one in block_operators(shape, HIDDEN, setting.run) for run in one.runs]
    found = casts(shape, HIDDEN, runs, setting)
    nbytes = 2 * (1 if block else 2) + 1 + 1
    assert [one.nbytes(2, 2) for one in found.inputs] == [TOKENS * k * nbytes for k, _ in sizes]
    assert [one.nbytes(2, 2) for one in found.gradients] == [TOKENS * n * nbytes for _, n in sizes]
    fused = casts(shape, HIDDEN, runs, narrow(fused_casts=True))
    assert sum(one.nbytes(2, 2) for one in fused.inputs) == TOKENS * heads * value * 4
    assert sum(one.nbytes(2, 2) for one in fused.gradients) == TOKENS * (entered + 2 * HIDDEN) * 4


def test_experts_cast_what_is_sent_to_them() -> None:
    setting, shape = narrow(), DecoderBlock(Attention(1, 1, 1, 1), Experts(8, 2, 32))
    found = casts(shape, HIDDEN, [ExpertProducts(100, 8, HIDDEN, 32)], setting)
    assert [one.nbytes(2, 2) for one in found.inputs] == [100 * (HIDDEN + 32) * 6]
    assert [one.nbytes(2, 2) for one in found.gradients] == [100 * (HIDDEN + 2 * 32) * 6]


def test_products_outside_of_blocks_have_two_bytes_in_training() -> None:
    """Transformer Engine and torchtitan leave the head out; a server reads what its weights are stored in."""
    run = TokenRun(1, SEQUENCE)
    head = [product(SEQUENCE, HIDDEN, 32000)]
    plain = float(operation_time("H100", Product(SEQUENCE, 32000, HIDDEN), "bfloat16"))
    assert pass_times(head, narrow(), None).forward == pytest.approx(plain)
    served = replace(narrow(), training=False, run=run)
    less = float(operation_time("H100", Product(SEQUENCE, 32000, HIDDEN), "float8"))
    assert pass_times(head, served, None).forward == pytest.approx(less)


@given(st.floats(1, 1e9), st.integers(1, 64), st.sampled_from([1, 8]), st.integers(0, 3), st.booleans())
def test_updates_take_the_traffic_of_gradients_and_states(
    count: float, samples: int, replicas: int, zero: int, copied: bool
) -> None:
    """A gradient of 2 bytes is added to one of 4, read and written; so is a copy; Adam runs once a batch."""
    way = Parallelism(zero=zero, data_parallel=replicas, copied_gradients=copied)
    numbers = number_bytes("bfloat16", True, gradient_dtype="float32")
    setting = replace(narrow("bfloat16"), numbers=numbers, parallelism=way, microbatches=samples)
    own, shared = replicas if zero == 3 else 1, replicas if zero else 1
    added = (4 + 4 + 2 + 8 * copied) / own if samples > 1 else 0.0
    nbytes = count * (added + (4 + 2 * 12 + 2) / shared / samples)
    assert update_times(count, setting) == pytest.approx(float(operation_time("H100", Traffic(nbytes / 2))))
