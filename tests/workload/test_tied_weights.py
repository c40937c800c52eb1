"""Tied weights as copies or together: memory, exchanges and classes, by hand and for random layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.workload.tied_weights import exchanged_once_in

W = 4e6  # bytes of the tied weights; a sample of a batch of one pays 4 ms for them at 1 GB/s
DEVICES = pt.Devices.accelerated(2)


def layers(**options: Any) -> list[pt.Layer]:
    ends: dict[str, Any] = {"parameters": 10e6, "optimizer": 20e6, "shared": {"word": W}} | options
    return [
        pt.Layer("first", 1.0, 2.0, output=1e6, **ends),
        pt.Layer("middle", 5.0, 9.0, output=1e6),
        pt.Layer("last", 1.0, 2.0, **ends),
    ]


def apart(graph: pt.Graph) -> dict[Any, str]:
    return {node: f"accelerator{int('last' in str(node))}" for node in graph.ids}


@pytest.mark.parametrize("microbatches", [1, 4])
@pytest.mark.parametrize("route", ["host", "direct"])
def test_each_device_sends_and_receives_the_gradient(microbatches: int, route: str) -> None:
    """The all-reduce of two: W out and W in on each, once a batch, in half of the time if sent directly."""
    graph = pt.Graph.chain(layers(), bandwidth=1e9, microbatches=microbatches)
    devices = pt.Devices((pt.DeviceKind("accelerator", 2),), route=route)
    copied = pt.with_training_states(graph, tied="copied")
    share = 1.0 if route == "host" else 0.5
    for given_graph, ways in ((graph, 1), (copied, 2)):
        first, last = pt.evaluate(given_graph, devices, apart(graph)).loads
        exchange = ways * W / 1e6 / microbatches
        assert first.load == pytest.approx(17 + share * (1 + 1 + exchange))
        assert last.load == pytest.approx(3 + share * (1 + 1 + exchange))


def test_copies_count_on_each_device_and_once_where_all_is_together() -> None:
    graph = pt.Graph.chain(layers(), bandwidth=1e9)
    copied, together = (pt.with_training_states(graph, tied=tied) for tied in ("copied", "together"))
    assert np.array_equal(copied.parts, graph.parts)
    saved = graph.parts - together.parts
    assert saved[:, [2, 5]].sum(axis=1).tolist() == [W, W, 2 * W, 0.0, 0.0] and saved.sum() == 4 * W
    same = together.color[[0, 2, 3, 5]]
    assert (same == same[0]).all() and together.color[1] != same[0]
    alone = dict.fromkeys(graph.ids, "accelerator0")
    memory = [pt.evaluate(each, DEVICES, alone).loads[0].memory for each in (copied, together)]
    assert memory[0] - memory[1] == 4 * W


def test_an_exchange_follows_the_batch() -> None:
    """Once a batch where the schedule flushes, for every sample where it updates the weights after each."""
    graph = pt.Graph.chain(layers(), bandwidth=1e9)
    loads = {}
    for schedule in ("1f1b", "gpipe", "1f1b_async"):
        plan = pt.solve(
            graph,
            DEVICES,
            "throughput",
            tied="copied",
            schedule=schedule,
            microbatches=8,
            constraints=pt.Constraints(pin={"first": "accelerator:0", "last": "accelerator:1"}),
        )
        assert pt.evaluate(graph, DEVICES, plan).value == plan.value
        loads[schedule] = plan.value
    assert loads["1f1b"] == loads["gpipe"] == pytest.approx(17 + 2 + 1)
    assert loads["1f1b_async"] == pytest.approx(17 + 2 + 8)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.booleans())
def test_batches_in_two_steps_are_batches_in_one(before: int, after: int, copied: bool) -> None:
    graph = pt.Graph.chain(layers(), bandwidth=1e9, microbatches=before)
    expected = pt.Graph.chain(layers(), bandwidth=1e9, microbatches=after)
    if copied:
        graph, expected = (pt.with_training_states(each, tied="copied") for each in (graph, expected))
    assert np.allclose(exchanged_once_in(graph, after).cost, expected.cost, rtol=1e-12, atol=0)


def test_layers_side_by_side_exchange_beside_what_they_send() -> None:
    """The edge of the gradient of the weights is raised, not that of the gradient of the output."""
    graph = pt.Graph.chain([each for each in layers() if each.name != "middle"], bandwidth=1e9)
    copied = pt.with_training_states(graph, tied="copied")
    assert sorted(copied.cost - graph.cost)[-2:] == [0.0, pytest.approx(W / 1e6)]


def test_what_cannot_be_done_is_refused() -> None:
    graph = pt.Graph.chain(layers(), bandwidth=1e9)
    copied = pt.with_training_states(graph, tied="copied")
    assert pt.with_training_states(copied, tied="copied") is copied
    plain = pt.Graph.chain([pt.Layer("a", 1.0, 2.0)])
    assert pt.with_training_states(plain, tied="copied") is plain
    assert pt.with_training_states(graph, tied="auto") is graph
    with pytest.raises(pt.OptionError, match=r"tied = 'together': .* made with tied = 'copied'"):
        pt.with_training_states(copied, tied="together")
    with pytest.raises(pt.OptionError, match=r"tied = 'apart': must be one of copied, together, auto"):
        pt.with_training_states(graph, tied="apart")
    bare = pt.Graph.chain(layers(), bandwidth=1e9)
    extras = type(bare.extras)({"timeUnit": "ms"}, bare.extras.nodes)
    with pytest.raises(pt.OptionError, match="does not say what its tied weights take"):
        pt.with_training_states(pt.Graph(**{**vars(bare), "extras": extras}), tied="copied")
    served = pt.Graph.chain(layers(), bandwidth=1e9, training=False)
    with pytest.raises(pt.OptionError, match="is for training"):
        pt.with_training_states(served, tied="copied")


@pytest.mark.parametrize(
    "ties",
    [
        3,
        {},
        {"counted": True, "copies": [], "exchanges": [["last", "first", 1.0]]},
        {"counted": True, "copies": [["no", 1.0, 1.0, 1.0]], "exchanges": []},
        {"counted": True, "copies": [["last", 1.0]], "exchanges": []},
        {"counted": True, "copies": [["last", -1.0, 0.0, 0.0]], "exchanges": [[]]},
        {"counted": True, "copies": {}, "exchanges": None},
        {"counted": True, "copies": [[["last"], 1.0, 1.0, 1.0]], "exchanges": []},
    ],
)
def test_a_file_may_say_anything_of_ties(ties: Any) -> None:
    graph = pt.Graph.chain(layers(), bandwidth=1e9)
    extras = type(graph.extras)({**graph.extras.top, "ties": ties}, graph.extras.nodes)
    broken = pt.Graph(**{**vars(graph), "extras": extras})
    assert exchanged_once_in(broken, 4) is broken
    with pytest.raises(pt.OptionError, match="does not say what its tied weights take"):
        pt.with_training_states(broken, tied="copied")
    assert pt.solve(broken, DEVICES, constraints=pt.Constraints(whole=("ties",))).value > 0
