"""The benchmark of pools: layers dealt by speed as an exhaustive search does it, and rows that are proven."""

from __future__ import annotations

from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from bench_pools import BAD_INPUT, FOLDER, main, row_of
from pools_bench.pools import POOLS
from pools_bench.proportional import best_proportional, shares

from partitioner import DeviceKind, Devices, Graph, Layer, Workload, evaluate, solve


def test_cuts_are_near_the_shares_of_speed() -> None:
    """The split nearest to the shares, of all that give every device a layer."""
    rng = np.random.default_rng(1)
    for _ in range(30):
        time = np.outer(1 / rng.choice([1.0, 2.0, 5.0], 3), np.ones(12))
        cuts = shares(time, [0, 1, 2])
        speed = 1 / time.sum(axis=1)
        wanted = np.cumsum(speed / speed.sum())[:-1]
        off = [abs(np.array(each) / 12 - wanted).max() for each in combinations(range(1, 12), 2)]
        assert abs(np.array(cuts[1:-1]) / 12 - wanted).max() == pytest.approx(min(off))


def test_the_best_order_of_kinds_counts_and_memory_is_told_apart() -> None:
    layers = [Layer(f"l{i}", {"a": 1.0 + i, "b": 3.0}, 1.0 * i, parameters=1.0) for i in range(5)]
    layers = [Layer(each.name, each.forward, {"a": 1.0, "b": 2.0}, parameters=1.0) for each in layers]
    graph = Graph.chain(layers)
    for memory, fits in ((None, True), (1.0, False)):
        devices = Devices((DeviceKind("a", 1, memory), DeviceKind("b", 1)))
        fitting, value = best_proportional(Workload(graph, devices))
        best = min(_by_hand(graph, devices, order) for order in permutations(range(2)))
        assert value == pytest.approx(best)
        assert (fitting is not None) == fits
        assert solve(graph, devices).value <= (fitting or np.inf)


def _by_hand(graph: Graph, devices: Devices, order: tuple[int, ...]) -> float:
    time = np.array([row[:5] + row[5:] for row in graph.time])
    cut = shares(time, list(order))[1]
    names = [devices.kinds[k].device(0) for k in order]
    placement = {node: names[int(node.removesuffix("/backward")[1:]) >= cut] for node in map(str, graph.ids)}
    return evaluate(graph, devices, placement).value


def test_missing_profiles_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path / "none")]) == BAD_INPUT
    assert "is not a folder" in capsys.readouterr().err


@pytest.mark.skipif(not FOLDER.exists(), reason=f"{FOLDER} is not there")
@pytest.mark.parametrize("place", [2, 5])
def test_a_row_is_proven_and_no_worse_than_by_speed(place: int) -> None:
    row = row_of(POOLS[place], FOLDER, 30.0)
    assert row.good
    assert row.pool.model in row.cells
