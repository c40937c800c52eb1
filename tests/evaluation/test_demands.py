"""Every constraint is broken once, and said to be so; a placement that obeys it is feasible."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, WorkloadError, evaluate
from partitioner.workload.constraints import Constraints

DEVICES = Devices((DeviceKind("gpu", 4), DeviceKind("cpu", 1, pays_communication=False)))
SPLIT = {"a": "gpu0", "b": "gpu0", "c": "gpu1", "d": "cpu0"}


def row(edges: Any = (("a", "b"), ("b", "c"), ("c", "d")), backward: Any = False) -> Graph:
    """Nodes a to d, of layers 0, 1, 1 and none."""
    times = {"gpu": [1.0] * 4, "cpu": [1.0] * 4}
    return Graph.from_arrays(times, edges, ids="abcd", layer=[0, 1, 1, None], backward=backward)


@pytest.mark.parametrize(
    ("broken", "text", "obeyed"),
    [
        ({"pin": {"a": "cpu"}}, "node 'a' is on gpu0, which the constraints forbid", {"pin": {"a": "gpu"}}),
        ({"forbid": {"[cd]": ["cpu"]}}, "node 'd' is on cpu0, which the", {"forbid": {"c": ["cpu"]}}),
        ({"pin": {"c": "gpu2"}}, "node 'c' is pinned to gpu2, it is on gpu1", {"pin": {"c": "gpu1"}}),
        (
            {"together": [["a", "c"]]},
            "node 'a' and node 'c' must be together: they are on gpu0 and gpu1",
            {"together": [["b", "a"], []]},
        ),
        (
            {"nodes_per_stage": (2, None)},
            "gpu1 holds 1 nodes, a stage must hold at least 2",
            {"nodes_per_stage": (1, None)},
        ),
        (
            {"nodes_per_stage": (None, 1)},
            "gpu0 holds 2 nodes, a stage must hold at most 1",
            {"nodes_per_stage": (None, 2)},
        ),
        (
            {"layers_per_stage": (None, 1)},
            "gpu0 holds 2 layers, a stage must hold at most 1",
            {"layers_per_stage": (None, 2)},
        ),
        (
            {"layers_per_stage": (1, None)},
            "cpu0 holds 0 layers, a stage must hold at least 1",
            {"nodes_per_stage": (1, 2)},
        ),
        (
            {"whole": ["modules"]},
            "node 'b' and node 'c' must be together: they are on gpu0 and gpu1",
            {"whole": ["ends", "ties"]},
        ),
        ({"stages": 2}, "the number of stages is 3, it must be 2", {"stages": 3}),
        ({"use_all_devices": True}, "gpu2 is not used", {}),
    ],
)
@pytest.mark.parametrize("objective", ["throughput", "gpipe", "latency"])
def test_a_broken_constraint_is_said(objective: str, broken: Any, text: str, obeyed: Any) -> None:
    """For each objective, alone."""
    found = evaluate(row(), DEVICES, SPLIT, objective, constraints=Constraints(**broken)).violations
    assert text in found[0]
    assert evaluate(row(), DEVICES, SPLIT, objective, constraints=Constraints(**obeyed)).feasible


def test_replicas_are_devices_in_use_but_no_stages() -> None:
    """And a pin to a replica is a pin to its stage."""
    replicas = {"gpu0": ["gpu2", "gpu3"]}
    demands = Constraints(use_all_devices=True, stages=3, pin={"a": "gpu3"})
    assert evaluate(row(), DEVICES, SPLIT, replicas=replicas, constraints=demands).feasible
    elsewhere = Constraints(pin={"c": "gpu3"})
    found = evaluate(row(), DEVICES, SPLIT, replicas=replicas, constraints=elsewhere)
    assert found.violations == ("node 'c' is pinned to gpu3, it is on gpu1",)


def test_copies_are_forbidden_where_there_must_be_none() -> None:
    replicas = {"gpu0": ["gpu2", "gpu3"]}
    found = evaluate(row(), DEVICES, SPLIT, replicas=replicas, constraints=Constraints(no_replicas=True))
    assert found.violations[0] == "gpu2 holds a copy of a stage, which the constraints forbid"
    assert evaluate(row(), DEVICES, SPLIT, constraints=Constraints(no_replicas=True)).feasible


def test_stages_of_a_chain_follow_the_order_of_the_modules() -> None:
    """Of two branches b and c the first one is in the later stage, unless the stages have another order."""
    graph = Graph.from_arrays({"gpu": [1.0] * 4}, [("a", "b"), ("a", "c")], ids=list("abcd"))
    demands = Constraints(in_order=True)
    homes = {"a": "gpu0", "b": "gpu1", "c": "gpu0", "d": "gpu1"}
    found = evaluate(graph, DEVICES, homes, constraints=demands, split="chain")
    assert found.violations == (
        "node 'c' is on gpu0, but the module before it is in a later stage: "
        "stages must have consecutive modules",
    )
    homes |= {"b": "gpu0"}
    assert evaluate(graph, DEVICES, homes, constraints=demands, split="chain").feasible
    apart = homes | {"d": "gpu2"}
    assert evaluate(graph, DEVICES, apart, constraints=demands, split="free").feasible


def test_only_forward_tensors_count_where_that_is_asked_for() -> None:
    """The edge from a to d goes past two stages; with parameters on a it counts."""
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    for parameters, feasible in ((0.0, True), (1.0, False)):
        graph = Graph.from_arrays(
            {"gpu": [1.0] * 4}, edges, ids="abcd", parameters=[parameters, 1.0, 1.0, 1.0]
        )
        constraints = Constraints(neighbours_only="forward")
        assert evaluate(graph, DEVICES, APART, constraints=constraints).feasible == feasible
        order = ["gpu0", "gpu1", "gpu2", "gpu3"]
        found = evaluate(graph, DEVICES, APART, constraints=constraints, order=order)
        assert found.feasible == feasible
    assert not evaluate(graph, DEVICES, APART, constraints=Constraints(neighbours_only=True)).feasible


def test_a_constraint_that_fits_no_node_is_refused() -> None:
    with pytest.raises(WorkloadError, match="pin = 'x': must be the id of a node or match a node's name"):
        evaluate(row(), DEVICES, SPLIT, constraints=Constraints(pin={"x": "gpu"}))


NEIGHBOURS = Constraints(neighbours_only=True)
APART = {"a": "gpu0", "b": "gpu1", "c": "gpu2", "d": "gpu3"}
CASES = {
    "a row": ([("a", "b"), ("b", "c"), ("c", "d")], False, None),
    "two rows": ([("a", "b"), ("d", "c")], False, None),
    "three neighbours": (
        [("a", "b"), ("a", "c"), ("a", "d")],
        False,
        "gpu0 exchanges tensors with 3 stages, it has at most two neighbours",
    ),
    "a circle": (
        [("a", "b"), ("b", "c"), ("a", "c")],
        False,
        "gpu0, gpu1, gpu2 exchange tensors in a circle",
    ),
    "a circle with a backward edge": (
        [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")],
        [0, 0, 0, 1],
        "exchange tensors in a circle",
    ),
    "a fork": ([("a", "b"), ("a", "c")], False, "can stand in no line in the order of the pipeline"),
}


@pytest.mark.parametrize("case", CASES)
def test_only_neighbours_exchange_tensors(case: str) -> None:
    edges, backward, text = CASES[case]
    found = evaluate(row(edges, backward), DEVICES, APART, constraints=NEIGHBOURS).violations
    assert (text in found[0] and len(found) == 1) if text else found == ()


def test_an_order_given_decides_who_is_a_neighbour() -> None:
    """Without one, the rows a b and d c can follow each other."""
    graph = row([("a", "b"), ("d", "c")])
    good, bad = ["gpu3", "gpu2", "gpu0", "gpu1"], ["gpu0", "gpu3", "gpu1", "gpu2"]
    assert evaluate(graph, DEVICES, APART, order=good, constraints=NEIGHBOURS).feasible
    found = evaluate(graph, DEVICES, APART, order=bad, constraints=NEIGHBOURS).violations
    assert found == (
        "gpu0 and gpu1 exchange tensors, but are not consecutive in the order",
        "gpu2 and gpu3 exchange tensors, but are not consecutive in the order",
    )


def test_what_is_no_chain_needs_a_union_of_lines() -> None:
    """Parts a d and b c form a line without an order."""
    torn = {"a": "gpu0", "b": "gpu1", "c": "gpu1", "d": "gpu0"}
    found = evaluate(row(), DEVICES, torn, constraints=NEIGHBOURS)
    assert found.shape.name == "free" and found.feasible
