"""The evaluator gives chosen alternatives the loads and the memory of their definition."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partitioner import (
    Alternative,
    Alternatives,
    DeviceKind,
    Devices,
    Graph,
    OptionError,
    Solution,
    WorkloadError,
    evaluate,
)

GPUS = Devices((DeviceKind("gpu", 8, memory=100.0, bandwidth=2.0),))
PLACE: dict[int | str, str] = {0: "gpu0", 1: "gpu4", 2: "gpu4"}
REPLICAS = {"gpu0": ("gpu1", "gpu2", "gpu3"), "gpu4": ("gpu5",)}
PAIRS = {0: "pair", 1: "pair", 2: "pair"}


def graph() -> Graph:
    """A fork: nodes 1 and 2 read the tensor of node 0; a pair of devices runs a node in half of its time."""
    found = Graph.from_arrays(
        {"gpu": [8.0, 4.0, 2.0]}, [(0, 1), (0, 2)], 1.0, parameters=[6.0, 2.0, 4.0], activations=10.0
    )
    outputs, inputs = {1: 0.5, 2: 0.25}, {0: 0.125}
    ways = {
        0: [Alternative("pair", {"gpu": 4.0}, 2, parameters=3.0, activations=5.0, outputs=outputs)],
        1: [Alternative("pair", {"gpu": 2.0}, 2, parameters=1.0, activations=5.0, inputs=inputs)],
        2: [
            Alternative("pair", {"gpu": 1.0}, 2, parameters=2.0, activations=5.0, inputs=inputs),
            Alternative("slow", {"gpu": 3.0}, activations=1.0, workspace=7.0),
        ],
    }
    return replace(found, alternatives=Alternatives(ways))


def test_copies_of_several_devices() -> None:
    """Stage 1: (4 + 1 + 0.75) / 2 copies + (1 / 2) * 3 / 2; stage 2: 3 + 1 + 2 * 0.125."""
    found = evaluate(graph(), GPUS, PLACE, replicas=REPLICAS, alternatives=PAIRS, schedule="1f1b")
    loads = {load.name: load for load in found.loads}
    assert found.feasible and found.value == 4.25
    assert loads["gpu0"].load == loads["gpu3"].load == 2.875 + 0.75 and loads["gpu4"].load == 4.25
    assert loads["gpu0"].sync == 0.75 and loads["gpu0"].transfer_out == (0.875, 0.0)
    assert loads["gpu0"].memory == 3 + 2 * 5 and loads["gpu5"].memory == 3 + 10  # ceil(1 / 2) + 1 samples


def test_the_model_of_piper() -> None:
    """Both edges are paid for; weights are exchanged 4 times a batch of 8: (1 / 2) * 3 / 2 * 4 / 8."""
    given: dict[str, Any] = {"replicas": REPLICAS, "alternatives": PAIRS, "microbatches": 8}
    found = evaluate(graph(), GPUS, PLACE, "piper", schedule="1f1b", **given)
    loads = {load.name: load.load for load in found.loads}
    assert found.feasible and found.objective == "piper"
    assert loads["gpu0"] == (4 + 2 + 0.75) / 2 + 0.375 and loads["gpu4"] == found.value == 3 + 2 + 0.25
    odd = evaluate(graph(), GPUS, PLACE, "piper", **{**given, "microbatches": 1})
    assert any("do not divide the 1 microbatches" in words for words in odd.violations)
    assert any("3 copies, more than the 1 microbatches" in words for words in odd.violations)


def test_own_figures_and_an_alternative_share_a_stage() -> None:
    found = evaluate(
        graph(), GPUS, dict.fromkeys(range(3), "gpu0"), alternatives={2: "slow"}, schedule="inference"
    )
    assert found.value == 8 + 4 + 3 and found.loads[0].memory == 6 + 2 + 10 + 10 + 1 + 7


@pytest.mark.parametrize(
    ("alternatives", "replicas", "message"),
    [
        ({0: "pair"}, {}, "the stage of gpu0 has 1 devices, which are no multiple of 2"),
        (PAIRS, {"gpu0": ("gpu1",)}, "the stage of gpu4 has 1 devices"),
        ({1: "pair"}, {"gpu4": ("gpu5",)}, "the nodes of gpu4 have several degrees: node 1 2, node 2 1"),
    ],
)
def test_a_broken_rule_is_a_violation(alternatives: Any, replicas: Any, message: str) -> None:
    found = evaluate(graph(), GPUS, PLACE, alternatives=alternatives, replicas=replicas)
    assert any(message in words for words in found.violations)


@pytest.mark.parametrize(
    ("alternatives", "message"),
    [
        ({7: "pair"}, "alternatives: node = 7: is not the id of a node"),
        (
            {1: "slow"},
            "node 1: alternative = 'slow': must be the name of an alternative of the node; it has pair",
        ),
        (["pair"], "must be a mapping from node id to the name"),
    ],
)
def test_a_name_that_means_nothing_is_refused(alternatives: Any, message: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        evaluate(graph(), GPUS, PLACE, alternatives=alternatives)
    assert message in str(caught.value)


def test_a_class_runs_in_one_way() -> None:
    one = replace(PAIRS_OF_A_CLASS, alternatives=Alternatives({0: WAYS, 1: WAYS}))
    with pytest.raises(WorkloadError, match="node 1: alternative = None: must be that of node 0"):
        evaluate(one, GPUS, {0: "gpu0", 1: "gpu0"}, alternatives={0: "slow"})


WAYS = [Alternative("slow", {"gpu": 3.0})]
PAIRS_OF_A_CLASS = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], color=["a", "a"])


def test_what_knows_no_alternatives_refuses_them() -> None:
    solution = Solution(PLACE, alternatives={2: "slow"})
    for objective in ("gpipe", "latency", "makespan"):
        with pytest.raises(OptionError, match="alternatives: must not be given for objective"):
            evaluate(graph(), GPUS, solution, objective)
