"""A trial is DPOS on the tasks split; the bound that rules trials out is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Dimension, Graph, Transfers
from partitioner.methods.placers.dpos import dpos
from partitioner.methods.placers.dpos_draft import WHOLE, draft_of
from partitioner.methods.placers.os_dpos import Trials, least_makespan, split_task
from partitioner.methods.placers.timing import makespan
from partitioner.planning.splitting.operations import Splitter
from partitioner.planning.splitting.start import in_order, tasks_at
from partitioner.problem.arrays import Ints
from partitioner.problem.tasks import Tasks
from partitioner.workload.topological import topological
from tests.methods.placers.plain_splits import split
from tests.random_workloads import uneven_workload


def first_seen(labels: Ints) -> list[int]:
    """Labels numbered as they turn up."""
    known: dict[int, int] = {}
    return [known.setdefault(label, len(known)) for label in labels.tolist()]


def content(tasks: Tasks) -> dict[str, Any]:
    """What the numbers of groups and tensors do not change."""
    return {
        "time": tasks.time.tolist(),
        "size": tasks.size.tolist(),
        "group": first_seen(tasks.group),
        "before": (tasks.before.start.tolist(), tasks.before.items.tolist()),
        "after": (tasks.after.start.tolist(), tasks.after.items.tolist()),
        "tensors": first_seen(np.concatenate((tasks.before_tensor, tasks.after_tensor))),
        "read": tasks.cost[tasks.before_tensor].tolist(),
        "sent": tasks.cost[tasks.after_tensor].tolist(),
    }


@pytest.mark.slow
@pytest.mark.parametrize(("first", "count"), [(0, 120), (1000, 2000)])
def test_arrays_are_the_tasks_of_the_rewritten_graph(first: int, count: int) -> None:
    """And of the graph that comes out, on graphs with kinds, factors, classes, passes and split twice."""
    channel = Dimension("channel", divides_input=False, divides_parameters=True)
    partial = Dimension("inner", divides_output=False, divides_parameters=True)
    compared = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, 9, 4)
        if any(kind.row not in graph.kinds for kind in devices.kinds):
            continue
        graph = in_order(graph, topological(graph.edges, len(graph)))
        splitter, plain, splits = Splitter(graph, devices, 0.0, 0.0), graph, {}
        draft = draft_of(tasks_at(graph, devices, Transfers()))
        for node in rng.permutation(len(graph))[:2].tolist():
            dimension = [Dimension("batch"), channel, partial][int(rng.integers(3))]
            n = int(rng.integers(2, 5))
            v = int(np.flatnonzero((draft.tasks.node == node) & (draft.role == WHOLE))[0])
            draft = split_task(draft, v, splitter.share(node, dimension, n))
            splits[node] = dimension, n
            plain = split(plain, graph.ids[node], dimension, n)
        result = splitter.graph_of(draft, splits)
        assert content(tasks_at(result, devices, Transfers())) == content(draft.tasks)
        assert result.ids == plain.ids
        again = tasks_at(in_order(plain, np.arange(len(plain))), devices, Transfers())
        assert content(again) == content(draft.tasks)
        np.testing.assert_allclose(result.time.sum(axis=1), graph.time.sum(axis=1))
        compared += 1
    assert compared > count * 2 / 3


def conv() -> Graph:
    """A -> conv -> b, c; conv has parameters of 8, activations of 6 and a size of 2."""
    return Graph.from_arrays(
        {"accelerator": [1.0, 8.0, 1.0, 1.0]},
        [("a", "conv"), ("conv", "b"), ("conv", "c")],
        [4.0, 2.0, 2.0],
        ids=["a", "conv", "b", "c"],
        parameters=[0.0, 8.0, 0.0, 0.0],
        activations=[0.0, 6.0, 0.0, 0.0],
        size=[0.0, 2.0, 0.0, 0.0],
    )


def rewritten(graph: Graph, dimension: Dimension) -> Graph:
    """The graph with its second node in two."""
    devices = Devices.accelerated(2)
    splitter = Splitter(graph, devices, 0.25, 0.5)
    draft = draft_of(tasks_at(graph, devices, Transfers()))
    draft = split_task(draft, 1, splitter.share(1, dimension, 2))
    return splitter.graph_of(draft, {1: (dimension, 2)})


def test_a_batch_is_divided_and_parameters_are_copied() -> None:
    """Halves of time, activations and tensors; all parameters in each part."""
    graph = rewritten(conv(), Dimension("batch"))
    names = ["conv/batch/split0", "conv/batch/0of2", "conv/batch/1of2", "conv/batch/concatenate"]
    assert list(graph.ids) == ["a", *names, "b", "c"]
    assert graph.time.tolist() == [[1.0, 0.25, 4.0, 4.0, 0.5, 1.0, 1.0]]
    assert graph.parts[0].tolist() == [0.0, 0.0, 8.0, 8.0, 0.0, 0.0, 0.0]
    assert graph.parts[3].tolist() == [0.0, 0.0, 3.0, 3.0, 0.0, 0.0, 0.0]
    assert graph.size.tolist() == [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    edges = [(u, v, c) for (u, v), c in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True)]
    assert edges == [
        (0, 1, 4.0),
        (1, 2, 2.0),
        (1, 3, 2.0),
        (2, 4, 1.0),
        (3, 4, 1.0),
        (4, 5, 2.0),
        (4, 6, 2.0),
    ]


def test_channels_divide_parameters_and_read_all_inputs() -> None:
    graph = rewritten(conv(), Dimension("channel", divides_input=False, divides_parameters=True))
    assert graph.parts[0].tolist() == [0.0, 0.0, 4.0, 4.0, 0.0, 0.0, 0.0]
    assert graph.cost.tolist() == [4.0, 4.0, 4.0, 1.0, 1.0, 2.0, 2.0]


def test_sizes_alone_are_parameters() -> None:
    """Without parts, a batch copies the size and channels divide it."""
    graph = Graph.from_arrays({"accelerator": [1.0, 8.0]}, [(0, 1)], 1.0, size=[0.0, 6.0])
    assert rewritten(graph, Dimension("batch")).size.tolist() == [0.0, 0.0, 6.0, 6.0]
    channel = Dimension("channel", divides_parameters=True)
    assert rewritten(graph, channel).size.tolist() == [0.0, 0.0, 3.0, 3.0]


def test_ids_that_are_taken_are_changed() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0, 8.0]}, ids=["1/batch/0of2", "1"])
    assert rewritten(graph, Dimension("batch")).ids == ("1/batch/0of2", "1/batch/0of2'", "1/batch/1of2")


ALONG = [Dimension("batch"), Dimension("inner", divides_output=False, divides_parameters=True)]


@pytest.mark.slow  # the kernel compiles for 40 s
@pytest.mark.parametrize(("first", "count"), [(0, 75), (75, 225)])
def test_as_dpos_and_never_below_the_bound(first: int, count: int) -> None:
    """On graphs with kinds, classes, memory limits and contention, a second split behind a first one."""
    placed, ruled_out = 0, 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, 9, 4)
        graph = in_order(graph, topological(graph.edges, len(graph)))
        splitter = Splitter(graph, devices, 0.25, 0.5)
        draft = draft_of(tasks_at(graph, devices, Transfers(contention=seed % 2 == 0)))
        for node in rng.permutation(len(graph))[:3].tolist():
            v = int(np.flatnonzero((draft.tasks.node == node) & (draft.role == WHOLE))[0])
            share = splitter.share(node, ALONG[int(rng.integers(2))], int(rng.integers(2, 5)))
            trials = Trials(draft, seed % 3 == 0, draft.tasks.links[0])
            split = split_task(draft, v, share)
            found = dpos(split.tasks, trials.reserve)
            value = np.inf if found is None else makespan(split.tasks, found.device, found.order)
            least = least_makespan(draft.tasks, trials.lines, *trials.around, v, share)
            if found is not None:
                assert trials.value(v, share, np.inf) == value
                assert least <= value * (1 + 1e-12)
                assert trials.value(v, share, value * (1 + 1e-9) + 1e-9) == value
                assert trials.value(v, share, least) == np.inf
                ruled_out += least > 0.99 * value
                placed += 1
            draft = split
    assert placed > count
    assert ruled_out > count / 10
