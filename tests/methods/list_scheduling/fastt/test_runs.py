"""Merging runs sorts as numpy's stable sort does."""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.fastt.runs import descending


def test_as_a_stable_sort() -> None:
    """Runs of all numbers and lengths, with many equal ranks."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        rank = rng.integers(0, int(rng.integers(1, 40)), int(rng.integers(0, 60))).astype(float)
        rank = np.sort(rank)[::-1].copy() if seed % 5 == 0 else rank
        assert descending(rank).tolist() == np.argsort(-rank, kind="stable").tolist()
