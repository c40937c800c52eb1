"""Arithmetic, traffic and what is kept agree with counts made one token, one pair, one expert at a time."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner.formats.llm.decoder import Attention, DecoderBlock, Dense, Experts
from partitioner.formats.llm.operators import TokenRun, block_operators, expert_operators

SMALL = st.integers(1, 6)


@given(SMALL, st.integers(1, 20), st.integers(0, 20), st.none() | st.integers(1, 25))
def test_pairs_are_counted_one_by_one(batch: int, sequence: int, context: int, window: int | None) -> None:
    """Token i sees the tokens up to itself, at most `window` of them."""
    seen = sum(min(context + i, window or context + i) for i in range(1, sequence + 1))
    assert TokenRun(batch, sequence, context).pairs(window) == batch * seen


@given(SMALL, SMALL, SMALL, SMALL, SMALL, st.booleans(), st.booleans())
def test_a_block_has_the_arithmetic_of_its_matrices(
    hidden: int, heads: int, size: int, width: int, sequence: int, gated: bool, bias: bool
) -> None:
    """Every weight of a matrix is one multiplication and addition a token; scores and sums are two a pair."""
    block = DecoderBlock(Attention(heads, 1, size, size, bias, bias), Dense(width, gated, bias), norms=0)
    matrices = hidden * heads * size * 2 + hidden * 2 * size + hidden * width * (2 + gated)
    biases = (heads * size + 2 * size + hidden + width * (1 + gated) + hidden) * bias
    found = block_operators(block, hidden, TokenRun(1, sequence))
    assert sum(one.parameters for one in found) == matrices + biases
    pairs = sum(range(1, sequence + 1))
    assert sum(one.flops for one in found) == 2 * sequence * matrices + 2 * pairs * heads * 2 * size
    kept = hidden + (heads + 2) * size + heads * size + hidden + (2 + 2 * gated) * width
    assert sum(one.kept for one in found) == sequence * kept


@pytest.mark.parametrize(("count", "top", "tokens"), [(4, 1, 2), (4, 2, 2), (3, 2, 3), (5, 5, 1), (6, 1, 1)])
def test_the_experts_that_are_read_are_the_expected_ones(count: int, top: int, tokens: int) -> None:
    """The mean over all ways in which the tokens may choose their experts."""
    choices = list(itertools.combinations(range(count), top))
    ways = list(itertools.product(choices, repeat=tokens))
    met = sum(len(set(itertools.chain(*way))) for way in ways) / len(ways)
    router, up, _, down, _ = expert_operators(Experts(count, top, 7), 3, tokens)
    assert (router.parameters, router.read) == (3 * count, 3 * count)
    assert up.parameters + down.parameters == count * 3 * 3 * 7
    assert up.read + down.read == pytest.approx(met * 3 * 3 * 7)
    assert up.flops + down.flops == 2 * tokens * top * 3 * 3 * 7


def test_shared_experts_are_run_by_every_token() -> None:
    plain = expert_operators(Experts(4, 2, 7), 3, 5)
    more = expert_operators(Experts(4, 2, 7, shared=11, shared_gate=True, router_bias=True), 3, 5)
    added = sum(one.parameters for one in more) - sum(one.parameters for one in plain)
    assert added == 3 * 3 * 11 + 3 + 4
    flops = sum(one.flops for one in more) - sum(one.flops for one in plain)
    assert flops == 2 * 5 * (3 * 3 * 11 + 3)
