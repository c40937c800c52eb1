"""A pattern means the node of that id, or else all nodes whose names it fits; contradictions are told."""

from __future__ import annotations

import pytest

from partitioner import Constraints, DeviceKind, Devices, Graph, WorkloadError
from partitioner.workload.resolved_constraints import demands_of, neighbour_edges, nodes_meant

GRAPH = Graph.from_arrays(
    {"gpu": [1.0] * 4, "cpu": [1.0] * 4},
    ids=[0, 1, "2", "head"],
    names=["embedding", "block0/attention", "block1/attention", "block1"],
)
DEVICES = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1)))


@pytest.mark.parametrize(
    ("pattern", "nodes"),
    [
        (0, [0]),
        ("0", []),
        ("2", [2]),
        (2, []),
        ("head", [3]),
        ("block1", [3]),
        ("block*", [1, 2, 3]),
        ("block[0-9]/attention", [1, 2]),
        ("Block*", []),
        (["a"], None),
    ],
)
def test_patterns(pattern: object, nodes: list[int] | None) -> None:
    if nodes is None:
        with pytest.raises(TypeError):
            nodes_meant(GRAPH, pattern)
    else:
        assert nodes_meant(GRAPH, pattern).tolist() == nodes


def test_pins_and_prohibitions() -> None:
    demands = demands_of(
        GRAPH,
        DEVICES,
        Constraints(
            pin={"head": "gpu1", 0: "cpu"}, forbid={"*/attention": ["cpu"]}, together=[[0, "block1"]]
        ),
    )
    assert demands.may.tolist() == [[False, True, True, True], [True, False, False, False]]
    assert demands.device.tolist() == [-1, -1, -1, 1]
    assert [nodes.tolist() for nodes in demands.together] == [[0, 3]]


def test_whole_modules_are_groups_after_those_of_the_user() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 3}, [(0, 1), (1, 2)], layer=["a", "b", "b"])
    demands = demands_of(graph, DEVICES, Constraints(together=[[0, 2]], whole=["modules"]))
    assert [nodes.tolist() for nodes in demands.together] == [[0, 2], [1, 2]]


def test_edges_that_join_neighbours() -> None:
    """Nodes 0 and 1 are made of the inputs; 2 to 4 are not, and 4 is a backward node."""
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 5},
        [(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)],
        backward=[False] * 4 + [True],
        parameters=[0, 0, 1, 0, 0],
    )
    expected: dict[bool | str, int] = {False: 5, True: 5, "forward": 1}
    for value, count in expected.items():
        edges = neighbour_edges(graph, Constraints(neighbours_only=value))
        assert len(edges) == count
    assert neighbour_edges(graph, Constraints(neighbours_only="forward")).tolist() == [[2, 3]]


@pytest.mark.parametrize(
    ("pin", "allowed"), [({}, False), ({"*": "gpu"}, True), ({"*": "cpu"}, False), ({0: "gpu"}, False)]
)
def test_one_kind_is_chosen_by_pins(pin: dict[str, str], allowed: bool) -> None:
    host = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1, pays_communication=False)))
    if allowed:
        assert demands_of(GRAPH, host, Constraints(pin=pin, one_kind=True)).may.tolist()[1] == [False] * 4
    else:
        with pytest.raises(WorkloadError, match="one_kind = True: needs one kind with a memory of its own"):
            demands_of(GRAPH, host, Constraints(pin=pin, one_kind=True))


def test_a_memory_of_their_own_rules_out_hosts() -> None:
    host = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1, pays_communication=False)))
    may = demands_of(GRAPH, host, Constraints(own_memory=True)).may
    assert may[0].all() and not may[1].any()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (Constraints(pin={"tail*": "gpu"}), "pin = 'tail*': must be the id of a node or match a node's name"),
        (Constraints(pin={0: "tpu"}), "pin = 'tpu': is not a kind or device; there are gpu (2), cpu (1)"),
        (Constraints(pin={0: "gpu2"}), "pin = 'gpu2': is not a kind or device"),
        (Constraints(forbid={0: ["gpu0"]}), "forbid = 'gpu0': is not a kind"),
        (Constraints(together=[["x"]]), "together = 'x': must be the id of a node"),
        (Constraints(pin={0: "gpu0", "emb*": "gpu1"}), "node 0: pin = gpu0 and gpu1: can only be on one"),
    ],
)
def test_what_means_nothing(constraints: Constraints, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        demands_of(GRAPH, DEVICES, constraints)
    assert message in str(error.value)


def test_kind_and_index_pin_to_a_device_where_its_name_is_that_of_a_kind() -> None:
    """Device 10 of kind A and kind A10 are both called A10: the kind is meant, A:10 is the device."""
    kinds = (DeviceKind("A", 11), DeviceKind("A10", 1))
    graph = Graph.from_arrays({"A": [1.0], "A10": [1.0]}, ids=["n"])
    found = {
        target: demands_of(graph, Devices(kinds), Constraints(pin={"n": target}))
        for target in ("A10", "A:10", "A10:0")
    }
    assert [demands.device.tolist() for demands in found.values()] == [[-1], [10], [11]]
    assert [demands.may[:, 0].tolist() for demands in found.values()] == [
        [False, True],
        [True, False],
        [False, True],
    ]
