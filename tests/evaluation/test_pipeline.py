"""The evaluator judges any pipeline as the oracle does: costs, memory, and whether a rule is broken."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from partitioner import evaluate
from partitioner.evaluation.result import Evaluation
from tests.oracle_pipelines import atoms, chains, values
from tests.oracle_stages import Rows, Splits, Stage, loads_of_stages, memory_of_stages
from tests.random_pipelines import FEATURES, Case, random_case

ALONE = [(feature,) for feature in FEATURES]
APART = [("groups",), ("groups", "kinds", "replicas", "memory", "constraints", "batch")]
APART += [("replicas", "latency"), (*FEATURES, "latency"), (*APART[1], "latency")]
few_and_many = pytest.mark.parametrize("count", [40, pytest.param(250, marks=pytest.mark.slow)])


def random_stages(rng: np.random.Generator, case: Case, most: int) -> list[Stage]:
    """Up to `most` stages on any devices of one kind each, whatever groups they are in."""
    left = {k: rng.permutation(kind.count).tolist() for k, kind in enumerate(case.devices.kinds)}
    stages: list[Stage] = []
    for _ in range(int(rng.integers(1, most + 1))):
        kinds = [k for k, free in left.items() if free]
        if kinds:
            k = int(rng.choice(kinds))
            r = int(rng.integers(1, min(case.replicas, len(left[k])) + 1))
            devices = tuple(left[k].pop() for _ in range(r))
            stages.append(Stage(k, devices, devices))
    return stages


def random_split(rng: np.random.Generator, case: Case, count: int) -> Rows:
    """The stage of every node, every stage in use: often a chain that obeys the constraints on shapes."""
    if rng.random() < 0.8:
        found = chains(case.graph, atoms(case.graph, case.constraints), count, case.constraints)
        if len(found):
            return np.asarray(found[int(rng.integers(len(found)))])
    split = rng.integers(count, size=len(case.graph))
    split[rng.permutation(len(split))[:count]] = np.arange(count)
    return split


def names_of(case: Case, stage: Stage) -> list[str]:
    return [case.devices.kinds[stage.kind].device(i) for i in stage.devices]


def verdict(case: Case, stages: list[Stage], split: Rows, ordered: bool) -> Evaluation:
    """What the evaluator says."""
    named = [names_of(case, stage) for stage in stages]
    return evaluate(
        case.graph,
        case.devices,
        {node: named[i][0] for node, i in zip(case.graph.ids, split.tolist(), strict=True)},
        case.objective,
        replicas={names[0]: names[1:] for names in named if len(names) > 1},
        order=[names[0] for names in named] if ordered else None,
        schedule=case.schedule,
        microbatches=case.microbatches,
        constraints=case.constraints,
    )


def judged(case: Case, stages: list[Stage], split: Rows) -> float:
    """The value by the oracle if the stages run in this order; infinity if that breaks a rule."""
    found = chains(case.graph, atoms(case.graph, case.constraints), len(stages), case.constraints)
    if not (found == split).all(axis=1).any():
        return np.inf
    asked = case.constraints, case.schedule, case.microbatches, case.objective
    return float(values(Splits(case.graph, split[None], len(stages)), case.devices, stages, *asked)[0])


def cases(seed: int, count: int, features: Any) -> Any:
    """Random cases, each with stages and a split."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        case = random_case(rng, features, most_nodes=7)
        stages = random_stages(rng, case, min(5, len(case.graph)))
        yield case, stages, random_split(rng, case, len(stages))


@few_and_many
@pytest.mark.parametrize("features", [*ALONE, FEATURES, *APART])
def test_costs_are_those_of_the_oracle(features: tuple[str, ...], count: int) -> None:
    """Any placement: loads and their parts, memory, the copies of stages, idle devices."""
    for case, stages, split in cases(1, count, features):
        splits = Splits(case.graph, split[None], len(stages))
        given = splits, case.devices, stages, case.schedule, case.microbatches
        load, compute, into, out, sync = (x[0] for x in loads_of_stages(*given))
        memory = memory_of_stages(splits, stages, case.schedule, case.microbatches)[0]
        found = {entry.name: entry for entry in verdict(case, stages, split, ordered=True).loads}
        for i, stage in enumerate(stages):
            names = names_of(case, stage)
            for name in names:
                entry = found.pop(name)
                parts = (entry.compute, entry.transfer_in, entry.transfer_out)
                expected = np.array([compute[i], into[i], out[i]]) / len(names)
                assert np.allclose([sum(part) for part in parts], expected, atol=1e-12)
                assert math.isclose(entry.load, load[i], abs_tol=1e-12)
                assert math.isclose(entry.sync, sync[i], abs_tol=1e-12)
                assert entry.memory == memory[i]
                assert entry.nodes == (split == i).sum()
                assert entry.replica_of == (None if name == names[0] else names[0])
        assert all(entry.load == entry.memory == entry.nodes == 0 for entry in found.values())


@few_and_many
@pytest.mark.parametrize("features", [(), *ALONE, FEATURES, *APART])
def test_values_and_verdicts_are_those_of_the_oracle(features: tuple[str, ...], count: int) -> None:
    """In the order given: feasible where the oracle says so, and then of the same value."""
    feasible = 0
    for case, stages, split in cases(2, count, features):
        expected, found = judged(case, stages, split), verdict(case, stages, split, ordered=True)
        assert found.feasible == (expected < np.inf), found.violations
        assert not found.feasible or math.isclose(found.value, expected, abs_tol=1e-12)
        feasible += found.feasible
    assert 0.06 * count <= feasible <= 0.94 * count


@few_and_many
@pytest.mark.parametrize("features", [("constraints",), ("constraints", "replicas", "levels", "kinds")])
def test_without_an_order_any_order_will_do(features: tuple[str, ...], count: int) -> None:
    """Without a schedule a chain is feasible if its stages are so in at least one order."""
    feasible = 0
    for case, stages, split in cases(3, count, features):
        if len(stages) > 4:
            continue
        best = np.inf
        for order in itertools.permutations(range(len(stages))):
            there = np.argsort(order)[split]
            best = min(best, judged(case, [stages[i] for i in order], there))
        found = verdict(case, stages, split, ordered=False)
        chain = found.shape.name == "chain"
        assert not chain or found.feasible == (best < np.inf), found.violations
        assert chain or best == np.inf
        feasible += found.feasible and chain
    assert feasible >= 0.06 * count
