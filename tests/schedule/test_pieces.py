"""The pieces of any split are contiguous, can be ordered, and take over the evaluator's times."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph
from partitioner.evaluation.costs import compute_times, transfer_times
from partitioner.evaluation.placed import Placed, read_placement
from partitioner.evaluation.shape import placement_shape, returns
from partitioner.schedule.pieces import Pieces, pieces_of
from partitioner.schedule.reading import read_passes
from tests.random_pipelines import random_case
from tests.schedule.lines import equal_stages

few_and_many = pytest.mark.parametrize("count", [100, pytest.param(300, marks=pytest.mark.slow)])


def cut(graph: Graph, devices: Devices, placement: dict[Any, str]) -> tuple[Placed, Pieces]:
    placed = read_placement(graph, devices, placement)
    return placed, pieces_of(placed, placement_shape(graph, placed.device, placed.names), None)


def random_cuts(count: int) -> Any:
    rng = np.random.default_rng(12)
    for _ in range(count):
        case = random_case(rng, ())
        names = case.devices.names
        placement = {node: names[int(rng.integers(len(names)))] for node in case.graph.ids}
        yield case.graph, case.devices, placement


@few_and_many
def test_pieces_are_contiguous_and_in_topological_order(count: int) -> None:
    for workload in random_cuts(count):
        placed, pieces = cut(*workload)
        graph, home = placed.graph, pieces.home
        assert (pieces.device[home] == placed.device).all()
        assert (pieces.backward[home] == graph.backward).all()
        assert (home[graph.edges[:, 0]] <= home[graph.edges[:, 1]]).all()
        for part in (graph.backward, ~graph.backward):
            assert returns(graph, home, part) == {}


@few_and_many
def test_pieces_of_one_device_add_up_to_its_load(count: int) -> None:
    """Processing, and transfers in and out, forward and backward."""
    for workload in random_cuts(count):
        placed, _ = cut(*workload)
        passes = read_passes(*workload)
        expected = (compute_times(placed), *transfer_times(placed))
        for part, whole in zip((passes.compute, passes.into, passes.out), expected, strict=True):
            total = np.zeros_like(whole)
            np.add.at(total, ((passes.direction > 0).astype(int), passes.device), part)
            assert np.allclose(total, whole, rtol=1e-12)


def test_a_chain_has_one_piece_a_stage_and_pass() -> None:
    placed, pieces = cut(*equal_stages(4))
    assert [placed.names[i] for i in pieces.device] == [f"gpu{i}" for i in (0, 1, 2, 3, 3, 2, 1, 0)]


def test_the_paper_splits_the_first_device_in_two() -> None:
    """Figure 3b: the first device has the beginning and the end, so that it is two virtual devices."""
    graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (1, 2)])
    devices = equal_stages(2).devices
    passes = read_passes(graph, devices, {0: "gpu0", 1: "gpu1", 2: "gpu0"})
    assert passes.device.tolist() == [0, 1, 0]
    assert passes.stages == 3 and not passes.line


def test_a_tensor_is_fetched_once_and_later_pieces_wait_for_it() -> None:
    """Node 0 feeds 1, 2 and, by 2's result, 3; 1 and 3 share a device with pieces of their own."""
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (1, 2), (0, 3), (2, 3)], cost=1.0)
    devices = equal_stages(3).devices
    passes = read_passes(graph, devices, {0: "gpu0", 1: "gpu1", 2: "gpu2", 3: "gpu1"})
    assert passes.device.tolist() == [0, 1, 2, 1]
    assert passes.into.tolist() == [0, 1, 1, 1]
    assert 1 in passes.before[passes.before_start[3] : passes.before_start[4]]
