"""A layer's time is the sum over what a device runs for it, counted here from the sizes of a block."""

from __future__ import annotations

import pytest

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
from partitioner.formats.llm.operators import TokenRun, block_operators
from partitioner.formats.llm.parallelism import RECOMPUTE, Parallelism
from partitioner.formats.llm.times import SUSTAINED, PassTimes, pass_times

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
    return pass_times(block_operators(block, HIDDEN, run), setting, block)


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
        "full": products + scores + traffic,
    }[recompute]
    found = timed(BLOCK, TokenRun(BATCH, SEQUENCE), attention=attention, recompute=recompute)
    assert found.forward == pytest.approx(SUSTAINED * (products + scores + traffic))
    if recompute != "elementwise" or attention == "fused":
        assert found.backward == pytest.approx(SUSTAINED * (backward + rest + again))


def test_a_gated_rotary_block_without_training_has_no_backward_pass_and_no_mask() -> None:
    block = DecoderBlock(Attention(16, 4, 64, 64), Dense(2048))
    found = timed(block, TokenRun(BATCH, SEQUENCE), training=False)
    turned = 2 * TOKENS * (16 + 4) * 64
    passed = [2 * TOKENS * HIDDEN, 2 * TOKENS * HIDDEN, turned, TOKENS * 3 * 2048, *[3 * TOKENS * HIDDEN] * 2]
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
