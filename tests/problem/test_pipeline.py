"""What the extended model is told of supernodes is the sum, the largest or the set over their nodes."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Constraints, DeviceKind, Devices, Graph, Level
from partitioner.problem.contract import contract
from partitioner.problem.fit import fit
from partitioner.problem.goal import Goal
from partitioner.problem.pipeline import UNLIMITED, Pipeline, PipelineLimits
from partitioner.problem.problem import Problem
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import demands_of

GRAPH = Graph.from_arrays(
    {"gpu": [1.0, 1.0, 0.0, 1.0]},
    [(0, 1), (1, 2), (0, 3)],
    color=["a", "a", None, None],
    layer=["x", "y", "y", None],
    parameters=[1.0, 2.0, 0.0, 4.0],
    activations=[8.0, 16.0, 0.0, 64.0],
    workspace=[3.0, 5.0, 0.0, 7.0],
)
DEVICES = Devices(
    (DeviceKind("gpu", 8, bandwidth=2.0),),
    levels=(Level("server", {"gpu": 2}, 4.0), Level("rack", {"gpu": 4}, 16.0)),
    synchronisation="overlapped",
)


def extended(regime: Regime, devices: Devices = DEVICES) -> tuple[Problem, Pipeline]:
    demands = demands_of(GRAPH, devices, regime.constraints)
    graph = fit(GRAPH, devices, demands, regime.schedule is not None)
    problem = contract(graph, devices, Goal(regime=regime, demands=demands))
    assert problem.pipeline is not None
    return problem, problem.pipeline


def test_supernodes_know_their_nodes() -> None:
    """Nodes 0 and 1 are of one colour; node 2 takes neither time nor memory, and goes with its neighbour."""
    problem, pipeline = extended(
        Regime(replicas=2, schedule="1f1b", constraints=Constraints(pin={3: "gpu5"}))
    )
    first, last = problem.member[0], problem.member[3]
    assert problem.member[1] == first != last
    assert pipeline.weights[[first, last]].tolist() == [3, 4]
    assert pipeline.parameters[[first, last]].tolist() == [3, 4]
    assert pipeline.activations[[first, last]].tolist() == [24, 64]
    assert pipeline.workspace[[first, last]].tolist() == [5, 7]
    assert [pipeline.pinned.row(v).tolist() for v in (first, last)] == [[], [5]]
    assert pipeline.nodes.sum() == 4
    assert sorted(pipeline.layers.row(first).tolist()) == [0, 1]
    assert pipeline.adjacent.row(first).tolist() != [] and first in pipeline.adjacent.row(last)
    assert problem.count.tolist() == [8]


def test_devices_as_arrays() -> None:
    _, pipeline = extended(Regime(replicas=3, schedule="gpipe", microbatches=6))
    assert pipeline.group.tolist() == [[2], [4]] and pipeline.slowdown.tolist() == [4, 16]
    assert pipeline.bandwidth.tolist() == [2 * 6 / 2] and not pipeline.added  # twice, once in 6 samples
    assert (pipeline.replicas, pipeline.schedule, pipeline.microbatches) == (3, "gpipe", 6)
    _, free = extended(Regime(), Devices((DeviceKind("gpu", 2),)))
    assert np.isinf(free.bandwidth).all() and free.added and free.group.shape == (0, 1)


@pytest.mark.parametrize(
    ("constraints", "limits", "rigid"),
    [
        (Constraints(), PipelineLimits(), False),
        (Constraints(nodes_per_stage=(None, 3)), PipelineLimits(nodes=(1, 3)), True),
        (Constraints(layers_per_stage=(2, None)), PipelineLimits(layers=(2, UNLIMITED)), True),
        (Constraints(stages=2), PipelineLimits(stages=2), True),
        (Constraints(use_all_devices=True), PipelineLimits(all_devices=True), True),
        (Constraints(neighbours_only=True), PipelineLimits(neighbours=True), False),
    ],
)
def test_limits(constraints: Constraints, limits: PipelineLimits, rigid: bool) -> None:
    """Where stages count even without time, no node is merged away."""
    problem, pipeline = extended(Regime(constraints=constraints))
    assert pipeline.limits == limits and limits.rigid == rigid
    assert problem.n == (3 if rigid else 2)


def test_features() -> None:
    assert Regime().features(Devices((DeviceKind("gpu", 2),))) == ()
    everything = Regime(2, "1f1b", None, Constraints(stages=1))
    assert everything.features(DEVICES) == ("replicas", "levels", "schedule", "limits")
    assert Regime(constraints=Constraints(pin={0: "gpu"})).features(DEVICES) == ("levels",)
    assert Regime(constraints=Constraints(pin={0: "gpu1"})).features(DEVICES) == ("levels", "limits")
