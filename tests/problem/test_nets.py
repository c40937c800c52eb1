"""What a supernode sends forward is the sum of the tensors that it makes forward and others read."""

from __future__ import annotations

import numpy as np

from partitioner import DeviceKind, Devices, Graph
from partitioner.problem.contract import contract
from partitioner.problem.goal import Goal
from partitioner.problem.nets import build_nets, forward_outputs
from partitioner.workload.constraints import NONE
from partitioner.workload.levels import Level
from partitioner.workload.resolved_constraints import demands_of
from tests.random_pipelines import FEATURES, random_case


def test_outputs_are_the_forward_tensors_of_each_supernode() -> None:
    """Nets that keep passes apart say the same of any members."""
    rng, several = np.random.default_rng(11), 0
    for _ in range(400):
        graph = random_case(rng, FEATURES, 9).graph
        count = int(rng.integers(1, len(graph) + 1))
        member = rng.permutation(np.arange(len(graph)) % count)
        nets = build_nets(graph, member, count, "passes")
        expected = np.bincount(nets.source, nets.cost * (nets.made == 0), count)
        assert forward_outputs(graph, member, count).tolist() == expected.tolist()
        several += len(set(graph.cost[graph.edges[:, 0] == 0].tolist())) > 1
    assert several > 10


def test_levels_keep_apart_who_makes_a_tensor() -> None:
    """Tensors of a for b and c, and of b's backward node for those of a and c, pass different links."""
    ids = ["a", "b", "c", "b'", "a'", "c'"]
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 6},
        [("a", "b"), ("a", "c"), ("b'", "a'"), ("b'", "c'")],
        1.0,
        ids=ids,
        backward=[False] * 3 + [True] * 3,
        color=[*"abc", *"bac"],
    )
    kind = DeviceKind("gpu", 4)
    flat, wired = Devices((kind,)), Devices((kind,), levels=(Level("server", {"gpu": 2}, 5.0),))
    demands = demands_of(graph, flat, NONE)
    goal = Goal(demands=demands)
    sources = [contract(graph, devices, goal).nets.source.tolist() for devices in (flat, wired)]
    assert [len(each) for each in sources] == [1, 2] and sources[1][0] != sources[1][1]
