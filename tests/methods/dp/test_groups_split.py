"""Kinds are divided by group, with their pins; parts come back with the devices of the user's kinds."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Constraints, DeviceGroup, DeviceKind, Devices, Graph, GroupLink
from partitioner.methods.dp.forms import by_group, on_fastest_links
from partitioner.methods.dp.lattice import chain_lattice
from partitioner.methods.dp.pipeline import is_exact
from partitioner.methods.method import Outcome, Part
from partitioner.problem.variants import PipelineProblem
from tests.methods.dp.pipeline_cases import problem_of
from tests.random_pipelines import Case

GROUPS = (
    DeviceGroup("one", {"a": 2}, 2.0),
    DeviceGroup("two", {"a": 1, "b": 1}, 3.0),
    DeviceGroup("three", {"b": 1}),
)
LINKS = (GroupLink(4, ("one", "two")), GroupLink(9))
KINDS = (DeviceKind("a", 3), DeviceKind("b", 2, times="a", time_factor=2.0, bandwidth=6.0))


def problem(edges: list[tuple[int, int]], pin: dict[int, str] | None = None) -> PipelineProblem:
    graph = Graph.from_arrays({"a": [1.0, 2.0, 3.0]}, edges, 1.0)
    devices = Devices(KINDS, groups=GROUPS, links=LINKS)
    return problem_of(Case(graph, devices, Constraints(pin=pin or {})))


def test_there_is_a_kind_for_each_group_and_kind_in_it() -> None:
    split = by_group(problem([(0, 1), (1, 2)]))
    assert split.kind.tolist() == [0, 0, 1, 1]
    assert split.first.tolist() == [0, 2, 0, 1]
    assert split.problem.count.tolist() == [2, 1, 1, 1]
    assert split.problem.pipeline.held.argmax(axis=0).tolist() == [0, 1, 1, 2]
    assert split.problem.work()[:, 2].tolist() == [3, 3, 6, 6]


def test_what_is_pinned_has_a_place_in_the_group_of_its_device_only() -> None:
    split = by_group(problem([(0, 1), (1, 2)], {1: "a2"}))
    node = int(split.problem.member[1])
    assert split.problem.allowed[:, node].tolist() == [False, True, False, False]
    assert split.problem.pipeline.pinned.row(node).tolist() == [0]
    assert split.problem.lossless


def test_parts_come_back_with_the_users_devices() -> None:
    split = by_group(problem([(0, 1), (1, 2)], {1: "a1"}))
    parts = [Part(0, np.array([0])), Part(0, np.array([1])), Part(3, np.array([2]))]
    found = split.outcome(Outcome(split.problem, parts, 0.0, 0.0, "optimal"))
    assert found.problem is split.given
    assert [(part.kind, part.devices) for part in found.parts or ()] == [(0, (0,)), (0, (1,)), (1, (1,))]


def test_factors_of_links_whose_other_end_is_not_known() -> None:
    """The one device of the last group has no link inside it."""
    least, most = problem([(0, 1), (1, 2)]).pipeline.unknown_links
    assert (least.tolist(), most.tolist()) == ([2, 3, 9], [9, 9, 9])
    assert on_fastest_links(problem([(0, 1), (1, 2)])).problem.nets.cost.tolist() == [2, 2]
    assert on_fastest_links(problem([(0, 1), (1, 2)])).problem.pipeline.bandwidth.tolist() == [np.inf, 3]


@pytest.mark.parametrize(
    ("edges", "exact"),
    [([(0, 1), (1, 2)], True), ([(0, 2), (1, 2)], False), ([(0, 1), (0, 2), (1, 2)], False)],
)
def test_values_are_exact_where_tensors_pass_between_neighbours(
    edges: list[tuple[int, int]], exact: bool
) -> None:
    assert is_exact(by_group(problem(edges)).problem, chain_lattice(np.arange(3))) == exact
