"""Small random graphs with one source, and questions to ask about them."""

from __future__ import annotations

import random

import numpy as np

from partitioner.methods.baselines.pipedream.layers import Layers
from tests.methods.baselines.pipedream.oracle import Ask


def chain(rng: random.Random, n: int) -> Layers:
    """A chain of `n` layers."""
    return with_columns(rng, n, [(v, v + 1) for v in range(n - 1)])


def residual(rng: random.Random, n: int) -> Layers:
    """A graph of `n` layers in which layer 0 is the only source."""
    edges = {(rng.randrange(max(0, v - 2), v), v) for v in range(1, n)}
    edges |= {(u, v) for v in range(1, n) for u in range(v) if rng.random() < 0.2}
    return with_columns(rng, n, sorted(edges))


def with_columns(rng: random.Random, n: int, edges: list[tuple[int, int]]) -> Layers:
    """Whole numbers, so that sums are exact; some layers are much heavier than others."""
    time, activation, parameters = (
        np.array([rng.choice((0, 1, 2, 5, 9, 30)) for _ in range(n)], dtype=float) for _ in range(3)
    )
    return Layers(time, activation, parameters, np.array(edges, dtype=int))


def ask(rng: random.Random, levels: int, most: int, states: str) -> Ask:
    """A question of up to `most` machines on each of some levels."""
    return Ask(
        tuple((rng.randint(1, most), rng.choice((0.5, 2.0, 10.0, 100.0))) for _ in range(levels)),
        states,
        straight=rng.random() < 0.3,
        fewer_machines=rng.random() < 0.4,
    )
