"""Operations count what loops over every number, token and expert count."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner.estimation import (
    AttentionScores,
    Collective,
    ExpertProducts,
    Product,
    Traffic,
    unfused_attention,
)

SMALL = st.integers(1, 5)


@given(SMALL, SMALL, SMALL, SMALL)
def test_products_are_counted_one_by_one(m: int, n: int, k: int, count: int) -> None:
    product = Product(m, n, k, count)
    assert product.flops == count * sum(2 for _ in itertools.product(range(m), range(n), range(k)))
    assert product.nbytes(1, 2) == count * (m * k + k * n + 2 * m * n)
    into, weights = product.backward()
    assert isinstance(into, Product) and isinstance(weights, Product)
    assert (into.m, into.n, into.k, into.count) == (m, k, n, count)
    assert (weights.m, weights.n, weights.k) == (k, n, m)
    assert into.flops == weights.flops == product.flops


@given(SMALL, st.integers(1, 12), st.integers(0, 12), SMALL, SMALL, st.integers(0, 20))
def test_attention_is_counted_one_by_one(
    batch: int, queries: int, context: int, key: int, group: int, window: int
) -> None:
    """Token i sees the tokens up to itself, at most `window` of them, in each of `group` x 2 heads."""
    scores = AttentionScores(batch, queries, context, 2 * group, 2, key, key + 1, window)
    sees = [
        [j for j in range(context + queries) if j <= i and (not window or i - j < window)]
        for i in range(context, context + queries)
    ]
    pairs = batch * sum(map(len, sees))
    assert scores.pairs == pairs
    assert scores.flops == 2 * pairs * 2 * group * (2 * key + 1)
    seen = len(set(itertools.chain(*sees)))
    own, cached = queries * 2 * group * (2 * key + 1), seen * 2 * (2 * key + 1)
    assert scores.nbytes(1, 2) == batch * (2 * own + cached)
    (back,) = scores.backward()
    assert back.flops == 2.5 * scores.flops


def test_sizes_may_be_arrays() -> None:
    scores = AttentionScores(*np.array([[1, 2], [3, 4], [0, 0], [8, 8], [2, 8], [64, 64], [64, 64], [2, 0]]))
    each = [AttentionScores(1, 3, 0, 8, 2, 64, 64, 2), AttentionScores(2, 4, 0, 8, 8, 64, 64)]
    assert scores.flops.tolist() == [one.flops for one in each]
    assert scores.nbytes(2, 2).tolist() == [one.nbytes(2, 2) for one in each]


@given(SMALL, st.integers(1, 9), SMALL, SMALL)
def test_unfused_attention_is_the_whole_square(batch: int, sequence: int, heads: int, key: int) -> None:
    first, softmax, dropout, second = unfused_attention(
        AttentionScores(batch, sequence, 0, heads, 1, key, key)
    )
    square = batch * heads * sequence**2
    assert first.flops == second.flops == 2 * square * key
    assert isinstance(softmax, Traffic) and isinstance(dropout, Traffic)
    assert softmax.nbytes(2, 2) == square * (2 + 2)  # reads a score, writes a weight
    assert dropout.nbytes(2, 2) == square * (2 + 2 + 1)  # reads it, writes it and a byte of the mask


@pytest.mark.parametrize(("rows", "local"), [(1, 3), (2, 3), (4, 2), (3, 1)])
def test_the_experts_that_are_read_are_the_expected_ones(rows: int, local: int) -> None:
    """The mean over all ways in which the rows may choose their experts."""
    ways = list(itertools.product(range(local), repeat=rows))
    met = sum(len(set(way)) for way in ways) / len(ways)
    experts = ExpertProducts(rows, local, 5, 7)
    assert experts.flops == 2 * rows * 3 * 5 * 7
    assert experts.nbytes(1, 0) == pytest.approx(met * 3 * 5 * 7, rel=1e-5)
    assert experts.nbytes(0, 1) == rows * (2 * 5 + 3 * 7)


@given(st.integers(1, 60), st.integers(1, 20), SMALL, st.integers(1, 40))
def test_balanced_rows_are_dealt_in_turn(rows: int, local: int, hidden: int, width: int) -> None:
    """Row i goes to expert i modulo their number; a curve tells inner numbers in whole sixteens apart."""
    met = len({row % local for row in range(rows)})
    experts = ExpertProducts(rows, local, hidden, width, apart=4, routing="balanced")
    assert experts.nbytes(1, 0) == met * 3 * hidden * width
    assert experts.axes == (rows / local, local, width, hidden, 2 if width % 16 else 1)
    skewed = ExpertProducts(rows, local, hidden, width, apart=4)
    assert skewed.flops == experts.flops and skewed.axes[3] == 4


@pytest.mark.parametrize(("name", "rounds"), [("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", 1)])
def test_a_ring_sends_each_part_to_the_next(name: str, rounds: int) -> None:
    """In each of gpus - 1 steps of a round a device sends one of `gpus` parts."""
    steps = [1000 / 4 for _ in range(rounds) for _ in range(4 - 1)]
    assert Collective(name, 4, 1000).sent == sum(steps)


def test_backward_passes_read_the_gradient_in_addition() -> None:
    (back,) = Traffic(100).backward()
    (own,) = Traffic(100, gradient=70).backward()
    assert (back, own) == (Traffic(150), Traffic(70))
