"""Prices of parts in parts are those of the links that nets take."""

from __future__ import annotations

import numpy as np

from partitioner import DeviceKind, Devices, Graph
from partitioner.methods.dp.levels_model import no_prices, part_prices, spanning_prices
from partitioner.problem.arrays import Floats
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import Case

GRAPH = Graph.from_arrays({"gpu": [1.0] * 4}, [(0, 1), (1, 2), (2, 3), (0, 3)], cost=1.0)
NETS = problem_of(Case(GRAPH, Devices((DeviceKind("gpu", 4),)))).nets
ALL = np.ones(4, dtype=bool)


def by_source(values: Floats) -> dict[int, float]:
    """The value of each net, by the node that makes it."""
    return dict(zip(NETS.source.tolist(), values.tolist(), strict=True))


def test_a_group_in_a_group() -> None:
    rack = part_prices(NETS, no_prices(NETS), ALL, np.array([True, True, True, False]), 9.0)
    assert by_source(rack.enter) == {0: 1.0, 1: 1.0, 2: 1.0}
    assert by_source(rack.leave) == {0: 9.0, 1: 1.0, 2: 9.0}
    within, share = np.array([True, True, True, False]), np.array([False, True, False, False])
    server = part_prices(NETS, rack, within, share, 3.0)
    assert by_source(server.enter) == {0: 3.0, 1: 1.0, 2: 3.0}
    assert by_source(server.leave) == {0: 9.0, 1: 3.0, 2: 9.0}


def test_a_stage_over_parts_pays_for_all() -> None:
    rack = part_prices(NETS, no_prices(NETS), ALL, np.array([False, True, True, True]), 9.0)
    stage = spanning_prices(NETS, rack, np.array([False, True, True, True]), 3.0)
    assert by_source(stage.enter) == {0: 9.0, 1: 3.0, 2: 3.0}
    assert by_source(stage.leave) == {0: 9.0, 1: 3.0, 2: 3.0}
