"""States are counted by hand, and cross what the planner says they cross."""

from __future__ import annotations

import random

import numpy as np
import pytest

from partitioner.base.errors import WorkloadError
from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.states import LayerIdeals, antichain_states, ideal_states
from tests.methods.baselines.pipedream.oracle import augmented_layers, crossing_layers, ideals
from tests.methods.baselines.pipedream.random_layers import residual

MOST = 5000
Edges = list[tuple[int, int]]


def layers_of(edges: Edges) -> Layers:
    """Layer v has an output of 2**v bytes, so that sums tell what they are of."""
    n = max(map(max, edges)) + 1
    return Layers(np.ones(n), 2.0 ** np.arange(n), np.ones(n), edges)  # type: ignore[arg-type]


def residual_network(blocks: tuple[int, ...], inner: int, project_first: bool) -> Edges:
    """Operators of a residual network: `inner` a block, and a projection of two where a stage begins."""
    edges: Edges = [(0, 1), (1, 2), (2, 3)]
    last = 3

    def follow(*producers: int) -> int:
        nonlocal last
        last += 1
        edges.extend((producer, last) for producer in producers)
        return last

    for stage, count in enumerate(blocks):
        for block in range(count):
            entry = last
            skip = follow(follow(entry)) if block == 0 and (stage or project_first) else entry
            main = follow(entry)
            for _ in range(inner - 1):
                main = follow(main)
            follow(follow(main, skip))
    for _ in range(4):
        follow(last)
    return edges


def members(states: LayerIdeals) -> list[frozenset[int]]:
    return [frozenset(np.flatnonzero(row).tolist()) for row in states.inside]


@pytest.mark.parametrize(
    ("edges", "count"),
    [
        ([(0, 1), (1, 2)], 3),
        ([(0, 1), (0, 2), (1, 3), (2, 3)], 5),
        ([(0, 1), (0, 2), (0, 3)], 8),
        ([(0, 1), (1, 2), (0, 3), (3, 4), (2, 5), (4, 5)], 10),
        (residual_network((2, 2, 2, 2), 5, project_first=False), 100),  # ResNet-18
        (residual_network((3, 4, 6, 3), 8, project_first=True), 240),  # ResNet-50
    ],
)
def test_one_source_gives_all_ideals(edges: Edges, count: int) -> None:
    """By hand 3 * 3 + 1 for two branches of two layers; the published planner's counts for the networks."""
    layers = layers_of(edges)
    narrow, wide = antichain_states(layers, MOST), ideal_states(layers, MOST)
    assert len(narrow.output) == len(wide.output) == count
    assert (narrow.inside == wide.inside).all() and (narrow.before == wide.before).all()


def test_several_sources_give_fewer() -> None:
    """Two chains 0 1 2 and 3 4 that meet in 5: the second one comes as a whole, and with layer 5."""
    layers = layers_of([(0, 1), (1, 2), (3, 4), (2, 5), (4, 5)])
    assert members(antichain_states(layers, MOST)) == [{0}, {0, 1}, {0, 1, 2}, {0, 1, 2, 3, 4, 5}]
    assert len(ideal_states(layers, MOST).output) == 4 * 3 - 1 + 1


def test_other_source_is_augmented() -> None:
    """Source 1 feeds 2 and 3: whoever has 2 misses 1, and 3 may follow it."""
    layers = layers_of([(0, 2), (1, 2), (1, 3)])
    states = antichain_states(layers, MOST)
    assert members(states) == [{0}, {0, 1, 2}, {0, 1, 2, 3}]
    assert states.output.tolist() == [1, 2 + 4, 4 + 8 + 2]


def test_layers_that_no_step_reaches_are_named() -> None:
    with pytest.raises(WorkloadError, match="layer 2: is not reached from the first source"):
        antichain_states(layers_of([(0, 1), (2, 3)]), MOST)
    assert len(ideal_states(layers_of([(0, 1), (2, 3)]), MOST).output) == 8


def test_states_equal_their_definition() -> None:
    """Ideals, cuts and order on random graphs with one source."""
    rng, overstated = random.Random(1), 0
    for _ in range(300):
        layers = residual(rng, rng.randint(1, 7))
        expected = ideals(layers)
        narrow, wide = antichain_states(layers, MOST), ideal_states(layers, MOST)
        assert members(narrow) == members(wide) == expected
        for i, ideal in enumerate(expected):
            crossing, augmented = crossing_layers(layers, ideal), augmented_layers(layers, ideal)
            assert crossing <= augmented
            assert wide.output[i] == layers.activation[list(crossing)].sum()
            assert narrow.output[i] == layers.activation[list(augmented)].sum()
            inclusion = [other > ideal for other in expected]
            assert narrow.before[i].tolist() == wide.before[i].tolist() == inclusion
            overstated += crossing < augmented
    assert overstated > 0
