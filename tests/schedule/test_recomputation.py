"""Recomputation adds forward passes to backward passes, and holds activations during backward passes only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.schedule import simulate
from partitioner.schedule.table import DIRECTIONS

DEVICES = pt.Devices((pt.DeviceKind("gpu", 3),))


def mirrored(draw: np.random.Generator, again: bool) -> tuple[pt.Graph, dict[Any, str]]:
    """Six forward nodes and their backward nodes on three devices; with `again` these take both times."""
    forward, backward, held = draw.uniform(1, 3, 6), draw.uniform(2, 5, 6), draw.uniform(1, 9, 6)
    place = np.sort(np.concatenate((np.arange(3), draw.integers(0, 3, 3))))
    edges = [(i, i + 1) for i in range(11)]
    graph = pt.Graph.from_arrays(
        {"gpu": np.concatenate((forward, (backward + forward * again)[::-1]))},
        edges,
        draw.uniform(0.1, 0.5, 11),
        backward=np.arange(12) >= 6,
        activations=np.concatenate((held, np.zeros(6))),
    )
    return graph, {i: f"gpu{place[min(i, 11 - i)]}" for i in range(12)}


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("seed", range(10))
def test_times_are_those_of_longer_backward_nodes(seed: int, schedule: str) -> None:
    graph, placement = mirrored(np.random.default_rng(seed), again=False)
    longer, _ = mirrored(np.random.default_rng(seed), again=True)
    found = simulate(graph, DEVICES, placement, schedule, 5, recompute=True)
    assert np.allclose(found.end, simulate(longer, DEVICES, placement, schedule, 5).end)
    assert found.bound == pytest.approx(simulate(longer, DEVICES, placement, schedule, 5).bound)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
@pytest.mark.parametrize("seed", range(10))
def test_one_sample_is_held_at_a_time(seed: int, schedule: str) -> None:
    graph, placement = mirrored(np.random.default_rng(seed), again=False)
    found = simulate(graph, DEVICES, placement, schedule, 5, recompute=True)
    held = dict.fromkeys(DEVICES.names, 0.0)
    for node, device in placement.items():
        held[device] += graph.parts[3, graph.ids.index(node)]
    assert found.peak_memory == pytest.approx([held[name] for name in found.devices])
    whole = simulate(graph, DEVICES, placement, schedule, 5)
    assert list(found.in_flight) == list(whole.in_flight)


def test_halves_recompute_in_the_first() -> None:
    graph, placement = mirrored(np.random.default_rng(0), again=False)
    plain, again = (
        simulate(graph, DEVICES, placement, "zb-h1", 5, recompute=which) for which in (False, True)
    )
    added = ((again.end - again.begin) - (plain.end - plain.begin))[:, 1]
    first = plain.table.direction == DIRECTIONS.index("I")
    assert (added[first] > 0.9).all() and np.allclose(added[~first], 0.0)


def test_what_has_no_backward_pass_is_refused() -> None:
    graph = pt.Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)])
    with pytest.raises(pt.OptionError, match="recompute = True: is for graphs with backward nodes"):
        simulate(graph, DEVICES, {0: "gpu0", 1: "gpu1"}, "inference", 4, recompute=True)
    with pytest.raises(pt.OptionError, match="recompute = 1: must be True or False"):
        simulate(graph, DEVICES, {0: "gpu0", 1: "gpu1"}, "inference", 4, recompute=1)  # type: ignore[arg-type]
