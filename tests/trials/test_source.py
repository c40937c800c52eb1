"""What trials print can be pasted, and what they reduce still fails."""

from __future__ import annotations

import numpy as np
from trials.campaign import SOUND, WRONG, Campaign, Trial
from trials.source import smallest, workload_source

import partitioner as pt
from tests.random_pipelines import random_case


def test_source_makes_the_same_workload() -> None:
    for seed in range(40):
        case = random_case(np.random.default_rng(seed), ("kinds", "levels", "memory"))
        names: dict[str, object] = {}
        exec(workload_source(case.graph, case.devices), names)
        made = names["graph"]
        assert isinstance(made, pt.Graph)
        assert made.digest == case.graph.digest
        assert names["devices"] == case.devices


def test_the_smallest_graph_still_fails() -> None:
    """A failure that needs two neighbours is reduced to them and their edge."""
    edges = [(i, i + 1) for i in range(9)] + [(0, 9)]
    graph = pt.Graph.from_arrays({"gpu": [float(i) for i in range(10)]}, edges)

    def fails(smaller: pt.Graph) -> bool:
        ends = [(smaller.ids[u], smaller.ids[v]) for u, v in smaller.edges.tolist()]
        return (4, 5) in ends

    less = smallest(graph, fails)
    assert less.ids == (4, 5) and less.edges.tolist() == [[0, 1]]


def test_one_wrong_trial_decides_the_exit_code() -> None:
    sound, wrong = Trial("row", "plan"), Trial("row", "plan", "it is late", "print(1)")
    assert Campaign(1).run([sound]) == SOUND
    assert Campaign(2).run([sound, wrong]) == WRONG
