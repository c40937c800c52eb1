"""Copies of operators that depend on inputs alone: which they are, and what each stage pays for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.workload.extras import Extras
from partitioner.workload.input_operators import input_operators, with_copies, with_shares_of_copies

EDGES = [("mask", "a"), ("mask", "table"), ("table", "b"), ("table", "c"), ("a", "b"), ("b", "c")]


def masked(**options: Any) -> pt.Graph:
    given: dict[str, Any] = {"parameters": [0.0, 0.0, 1.0, 1.0, 1.0], "ids": ["mask", "table", "a", "b", "c"]}
    return pt.Graph.from_arrays({"gpu": [2.0, 4.0, 10.0, 10.0, 10.0]}, EDGES, 3.0, **(given | options))


def test_what_depends_on_inputs_alone_and_is_read_by_others() -> None:
    def of(**options: Any) -> list[Any]:
        graph = masked(**options)
        return [graph.ids[i] for i in np.flatnonzero(input_operators(graph)).tolist()]

    assert of() == ["mask", "table"]
    assert of(parameters=[1.0, 0.0, 1.0, 1.0, 1.0]) == []
    assert of(parameters=0.0) == []
    assert of(allowed={"gpu": [True, False, True, True, True]}) == ["mask"]
    assert of(color=[None, "x", "x", None, None]) == ["mask"]
    assert of(color=["x", None, "x", None, None]) == []
    assert of(parameters=[0.0, 0.0, 1.0, 1.0, 0.0]) == ["mask", "table"]
    listed: list[dict[str, Any]] = [{"ofInputs": ["a", "table"]}, {"ofInputs": ["b"]}, {}, {}, {}]
    assert of(extras=Extras(nodes=listed)) == ["mask"]
    listed[1] = {"ofInputs": ["b", "c"]}
    assert of(extras=Extras(nodes=listed)) == ["mask", "table"]
    shared: list[dict[str, Any]] = [{"sharedParameters": ["word"]}, {}, {}, {}, {}]
    assert of(extras=Extras(nodes=shared)) == []


def test_each_stage_pays_once_and_nothing_is_sent() -> None:
    graph = masked(size=[1.0, 5.0, 0.0, 0.0, 0.0])
    made = with_copies(graph, np.array([0, 0, 0, 1, 1]))
    assert made.time.tolist() == [[0.0, 0.0, 12.0, 16.0, 10.0]]
    assert made.size.tolist() == [0.0, 0.0, 1.0, 6.0, 0.0]
    assert made.edges.tolist() == [[2, 3], [3, 4]]
    assert with_copies(made, np.arange(5)) is made
    third = with_copies(graph, np.array([0, 0, 0, 1, 2]))
    assert third.time.tolist() == [[0.0, 0.0, 12.0, 16.0, 16.0]]
    assert with_shares_of_copies(graph).time.tolist() == [[0.0, 0.0, 10 + 2 / 3, 12 + 2 / 3, 12 + 2 / 3]]


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_shares_are_at_most_what_stages_pay(data: st.DataObject) -> None:
    """For each device of random placements, in each pass; colours stay together."""
    n = data.draw(st.integers(3, 8))
    pairs = [(i, j) for j in range(n) for i in range(j) if data.draw(st.booleans())]
    backward = sorted(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    graph = pt.Graph.from_arrays(
        {"gpu": data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))},
        pairs,
        1.0,
        backward=backward,
        parameters=data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)),
        color=data.draw(st.lists(st.sampled_from([None, "x", "y"]), min_size=n, max_size=n)),
    )
    chosen = input_operators(graph)
    home = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)))
    for color in range(len(graph.color_labels)):
        home[graph.color == color] = color
    whole, shared = with_copies(graph, home), with_shares_of_copies(graph)
    after: dict[int, set[int]] = {i: {j for k, j in pairs if k == i} for i in range(n)}
    for device in range(3):
        mine = home == device
        reached = {i for i in range(n) if chosen[i] and _reads(i, after, chosen, home, device)}
        own = graph.time[0][mine & ~chosen].sum() + graph.time[0][sorted(reached)].sum()
        assert whole.time[0][mine & ~chosen].sum() == pytest.approx(own)
        for of_pass in (graph.backward, ~graph.backward):
            nodes = mine & ~chosen & of_pass
            assert shared.time[0][nodes].sum() <= whole.time[0][nodes].sum() + 1e-9


def _reads(node: int, after: dict[int, set[int]], chosen: Any, home: Any, device: int) -> bool:
    """Whether a node of a device that is no copy reads an operator, directly or through others."""
    return any(
        _reads(one, after, chosen, home, device) if chosen[one] else home[one] == device
        for one in after[node]
    )
