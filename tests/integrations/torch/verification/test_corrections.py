"""Corrections that made the measurements are found again, or terms as good near none, also for other runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.integrations.torch.verification import fitting
from partitioner.integrations.torch.verification.comparing import RunComparison, compare_with_run
from partitioner.integrations.torch.verification.corrections import Corrections
from partitioner.integrations.torch.verification.fitting import fit_corrections
from partitioner.integrations.torch.verification.measured import MeasuredRun
from partitioner.schedule import simulate

DEVICES = pt.Devices((pt.DeviceKind("gpu", 2),))
COUNTS = (4, 16)
SEEDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 20))]


def chain(seed: int, nodes: int = 8) -> pt.Graph:
    """A chain of random times and transfers that are small against them."""
    draw = np.random.default_rng(seed)
    time, cost = draw.uniform(5, 9, nodes), draw.uniform(0.2, 2.0, nodes - 1)
    return pt.Graph.from_arrays({"gpu": time}, [(i, i + 1) for i in range(nodes - 1)], cost)


def cut(graph: pt.Graph, place: int) -> dict[Any, str]:
    return {node: f"gpu{int(i >= place)}" for i, node in enumerate(graph.ids)}


def as_if_measured(
    graph: pt.Graph, placement: Mapping[Any, str], truth: Corrections, foreign: float = 0.0
) -> RunComparison:
    """The comparison of a graph with a run that takes what its corrected form says."""
    real = truth.applied(graph)
    few, many = (
        simulate(real, DEVICES, placement, "inference", n, links="direct", pass_time=truth.pass_time)
        for n in COUNTS
    )
    run = MeasuredRun(
        "inference", COUNTS, (few.makespan, many.makespan), many, dict.fromkeys(many.devices, 0.0), foreign
    )
    return compare_with_run(pt.Workload(graph, DEVICES), placement, run)


def drawn(seed: int) -> Corrections:
    """Random corrections."""
    draw = np.random.default_rng(100 + seed)
    return Corrections(draw.uniform(1, 1.5), draw.uniform(0, 0.5), draw.uniform(0.5, 2), draw.uniform(0, 1))


def five_runs(seed: int, truth: Corrections) -> list[RunComparison]:
    graphs = [chain(seed + 50 * i) for i in range(5)]
    return [as_if_measured(graph, cut(graph, 2 + i), truth) for i, graph in enumerate(graphs)]


def errors(seed: int, truth: Corrections, found: Corrections) -> Iterator[float]:
    """Yield the errors of the predicted times of another graph at three cuts."""
    other = chain(seed + 1000)
    for place in (2, 4, 6):
        measured = as_if_measured(other, cut(other, place), truth).run
        again = compare_with_run(pt.Workload(other, DEVICES), cut(other, place), measured, found)
        yield from (abs(again[name].error) for name in ("time per sample", "batch"))


@pytest.mark.parametrize("seed", SEEDS)
def test_what_made_the_measurements_is_found(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no error of the measurements is expected, all terms are."""
    monkeypatch.setattr(fitting, "ERROR", 0.0)
    found = fit_corrections(five_runs(seed, drawn(seed)))
    assert astuple(found) == pytest.approx(astuple(drawn(seed)), rel=1e-6, abs=1e-6)
    assert max(errors(seed, drawn(seed), found)) < 1e-6


@pytest.mark.parametrize("seed", SEEDS)
def test_other_runs_are_predicted(seed: int) -> None:
    found = fit_corrections(five_runs(seed, drawn(seed)))
    left, before = (list(errors(seed, drawn(seed), which)) for which in (found, Corrections()))
    assert max(left) < 0.04 and sum(left) < sum(before) / 4


def test_terms_that_no_run_needs_are_none() -> None:
    assert astuple(fit_corrections(five_runs(0, Corrections()))) == pytest.approx((1.0, 0.0, 1.0, 0.0))


def test_no_term_is_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that is faster than predicted, whatever its messages, has a factor below one and no message."""
    monkeypatch.setattr(fitting, "ERROR", 0.0)
    graphs = [chain(seed) for seed in range(5)]
    runs = [as_if_measured(graph, cut(graph, 3), Corrections(0.8, 0.0, 0.0)) for graph in graphs]
    found = fit_corrections(runs)
    assert found.compute == pytest.approx(0.8)
    assert found.message == pytest.approx(0.0, abs=1e-9)
    assert found.transfer == pytest.approx(0.0, abs=1e-9)


def test_busy_runs_do_not_count() -> None:
    graph = chain(0)
    good = as_if_measured(graph, cut(graph, 3), Corrections())
    busy = replace(good, run=replace(good.run, foreign=0.5))
    with pytest.raises(pt.OptionError, match="runs: 2 of 4 judge a prediction"):
        fit_corrections([good, good, busy, busy])


def test_solve_takes_the_corrected_graph() -> None:
    """Messages that are dear make one device better than two."""
    graph = pt.Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], [0.1])
    assert len(set(pt.solve(graph, DEVICES).placement.values())) == 2
    dear = Corrections(1.0, 5.0, 1.0).applied(graph)
    assert len(set(pt.solve(dear, DEVICES).placement.values())) == 1
