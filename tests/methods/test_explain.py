"""Whoever asks too much is told which demand rules every plan out."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import Constraints, DeviceKind, Devices, Graph, InfeasibleError, solve
from partitioner.methods.explain import conflicting_constraints_of, why_infeasible
from partitioner.problem.contract import contract
from partitioner.workload.pipeline_settings import Regime

GRAPH = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
PINS = {0: "accelerator0", 1: "accelerator1"}


@pytest.mark.parametrize("split", ["chain", "free"])
@pytest.mark.parametrize(
    ("demands", "conflicting_constraints"),
    [
        ({"stages": 4}, "stages = 4"),
        ({"stages": 4, "use_all_devices": True}, "stages = 4"),
        ({"nodes_per_stage": (2, 2), "neighbours_only": True}, "nodes_per_stage = (2, 2)"),
        ({"pin": PINS, "together": [[0, 1]], "stages": 2}, "pin of 0: 'accelerator0' or without pin of 1"),
    ],
)
def test_the_error_names_what_to_leave_out(
    split: str, demands: dict[str, Any], conflicting_constraints: str
) -> None:
    """Each demand is left out in turn, by solving again."""
    with pytest.raises(InfeasibleError) as caught:
        solve(GRAPH, Devices.accelerated(3), split=split, constraints=Constraints(**demands))
    assert f"obeys the limits; without {conflicting_constraints}" in str(caught.value)


def test_all_together_are_named_where_no_single_one_is_to_blame() -> None:
    """Two demands of which each alone is too much; then a workload that fits nowhere anyway."""
    asked = Constraints(stages=4, nodes_per_stage=(4, None))
    with pytest.raises(InfeasibleError, match="; without all that is demanded there is one"):
        solve(GRAPH, Devices.accelerated(2), constraints=asked)
    heavy = Graph.from_arrays({"accelerator": [1.0, 1.0]}, size=3.0)
    with pytest.raises(InfeasibleError, match="memory: the nodes take 6 together"):
        solve(heavy, Devices.accelerated(1, memory=4.0), constraints=Constraints(stages=1))


def test_attempts_share_the_time() -> None:
    """Without time nothing is tried; with it every demand is, one at a time, and gets its share."""
    asked = Constraints(pin=PINS, forbid={2: ["cpu"]}, stages=2)
    tried: list[tuple[Constraints, float]] = []

    def none(fewer: Regime, seconds: float) -> bool:
        tried.append((fewer.constraints, seconds))
        return False

    assert conflicting_constraints_of(Regime(constraints=asked), none, seconds=0.0) == ()
    assert tried == []
    assert conflicting_constraints_of(Regime(constraints=asked), none, seconds=5.0) == ()
    assert [len(fewer.pin) + len(fewer.forbid) + bool(fewer.stages) for fewer, _ in tried] == [3, 3, 3, 3, 0]
    assert all(0.9 < seconds <= 5.0 for _, seconds in tried)


def test_memory_of_a_kind_is_found_by_sums() -> None:
    """Nodes that only one kind may run do not fit it."""
    times = {"gpu": [1.0, 1.0], "cpu": [1.0, 1.0]}
    graph = Graph.from_arrays(times, size=3.0, allowed={"gpu": [True, True], "cpu": [False, False]})
    devices = Devices((DeviceKind("gpu", 1, memory=4.0), DeviceKind("cpu", 1)))
    assert why_infeasible(graph, devices, contract(graph, devices)).startswith(
        "memory: nodes that run on gpu only take 6"
    )


def test_a_schedule_may_be_to_blame() -> None:
    """Two samples of 3 on the first device; without a schedule one fits."""
    chain = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], activations=3.0)
    with pytest.raises(InfeasibleError, match=r"; without schedule = '1f1b' there is one$"):
        solve(chain, Devices.accelerated(2, memory=5.0), schedule="1f1b")
