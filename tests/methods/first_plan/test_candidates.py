"""Among the first candidates are cuts of the file's own order, for which its author had reasons."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from partitioner import Devices, Graph, evaluate, solve
from partitioner.methods.first_plan.candidates import packed


def test_what_is_packed_fits() -> None:
    """On random items with room for all; where one item is larger than every device there is no packing."""
    rng = np.random.default_rng(0)
    for _ in range(50):
        time = np.where(rng.random((3, 12)) < 0.2, np.inf, rng.random((3, 12)))
        time[0] = 1.0
        size, memory = rng.random(12), np.array([12.0, 2.0, 3.0])
        place = packed(time, size, memory)
        assert place is not None
        assert np.isfinite(time[place, np.arange(12)]).all()
        assert (np.bincount(place, size, 3) <= memory).all()
        assert packed(time, np.append(size[1:], 20.0), memory) is None


DEVICES = Devices.accelerated(3)


def layered(n: int, width: int, rng: np.random.Generator) -> Graph:
    """Layers one after another in the file; each node reads two of the layer before."""
    layer = {v: v - v % width for v in range(n)}
    pairs = [(int(rng.integers(layer[v] - width, layer[v])), v) for v in range(width, n) for _ in (0, 1)]
    return Graph.from_arrays({"accelerator": rng.exponential(1.0, n)}, sorted(set(pairs)), 0.3)


def even_chain(graph: Graph) -> dict[int | str, str]:
    """Consecutive nodes of the file on each device, with even shares of the work."""
    before = np.cumsum(graph.time[0]) - graph.time[0] / 2
    place = np.minimum((3 * before / graph.time[0].sum()).astype(int), 2)
    return {node: f"accelerator{d}" for node, d in zip(graph.ids, place.tolist(), strict=True)}


@pytest.mark.parametrize("seed", range(4))
def test_no_even_cut_of_the_file_is_better(seed: int) -> None:
    graph = layered(2400, 20, np.random.default_rng(seed))
    stop = threading.Event()
    stop.set()
    known = evaluate(graph, DEVICES, even_chain(graph))
    assert known.shape.name == "chain"
    assert solve(graph, DEVICES, stop=stop).value <= known.value
