"""The planner predicts the best time of its own space, with stages that take that time."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import asdict
from typing import Any

import pytest

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError
from partitioner.methods.baselines.pipedream.layers import Layers, PipeDreamPlan
from partitioner.methods.baselines.pipedream.plan import plan
from tests.methods.baselines.pipedream.oracle import Ask, exhaustive_time
from tests.methods.baselines.pipedream.random_layers import ask, chain, residual
from tests.methods.slow_parameters import slow

ALMOST = 1 + 1e-12
CHAIN = Layers([4.0, 1.0, 3.0], [8.0, 8.0, 8.0], [0.0, 0.0, 90.0], [(0, 1), (1, 2)])  # type: ignore[arg-type]


def planned(layers: Layers, question: Ask) -> PipeDreamPlan | None:
    """The plan, None if there is none."""
    options = asdict(question)
    try:
        return plan(layers, options.pop("levels"), **options)
    except InfeasibleError:
        return None


def check_against_exhaustive_search(seed: int, cases: int, levels: int, machines: int, size: int) -> None:
    """Chains and residual graphs in turn; feasible and infeasible cases are both met."""
    rng, met = random.Random(seed), Counter[bool]()
    for case in range(cases):
        layers = (chain, residual)[case % 2](rng, rng.randint(1, size))
        question = ask(rng, levels, machines, rng.choice(("antichains", "ideals")))
        best, found = exhaustive_time(layers, question), planned(layers, question)
        assert math.isinf(best) == (found is None), (seed, case, question)
        if found is not None:
            assert found.time == pytest.approx(best, rel=1e-12), (seed, case, question)
            check_stages(layers, question, found)
        met[found is None] += 1
    assert met[True] > cases / 50 and met[False] > cases / 3


def check_stages(layers: Layers, question: Ask, found: PipeDreamPlan) -> None:
    """Every layer is in one stage, and no more machines are used than there are."""
    assert sorted(v for stage in found.stages for v in stage.layers) == list(range(len(layers)))
    assert all(len(stage.replicas) == len(question.levels) for stage in found.stages)
    machines = math.prod(count for count, _ in question.levels)
    used = sum(stage.machines for stage in found.stages)
    assert used <= machines if question.fewer_machines else used == machines
    if len(question.levels) == 1:
        compute = max(layers.time[list(s.layers)].sum() / s.machines for s in found.stages)
        assert compute <= found.time * ALMOST


@pytest.mark.parametrize("cases", [700, slow(2000)])
def test_one_level_equals_exhaustive_search(cases: int) -> None:
    check_against_exhaustive_search(seed=1, cases=cases, levels=1, machines=5, size=5)


@pytest.mark.parametrize("cases", [500, slow(1500)])
def test_two_levels_equal_exhaustive_search(cases: int) -> None:
    check_against_exhaustive_search(seed=2, cases=cases, levels=2, machines=3, size=5)


def test_three_levels_equal_exhaustive_search() -> None:
    check_against_exhaustive_search(seed=3, cases=600, levels=3, machines=2, size=4)


@pytest.mark.slow
@pytest.mark.parametrize(("levels", "machines", "size"), [(1, 6, 6), (2, 3, 5)])
def test_larger_cases_equal_exhaustive_search(levels: int, machines: int, size: int) -> None:
    check_against_exhaustive_search(4, 3000 // levels, levels, machines, size)


def test_all_ideals_are_never_worse() -> None:
    """Antichain states are ideals whose cuts cost no less."""
    rng, better = random.Random(5), 0
    for _ in range(400):
        layers = residual(rng, rng.randint(4, 9))
        question = ask(rng, 1, 4, "antichains")
        options = asdict(question) | {"fewer_machines": True}
        narrow = planned(layers, Ask(**options))
        wide = planned(layers, Ask(**(options | {"states": "ideals"})))
        assert narrow is not None and wide is not None
        assert wide.time <= narrow.time * ALMOST
        better += wide.time < narrow.time / ALMOST
    assert better > 0


def test_stages_of_the_last_level_hold_those_of_the_first() -> None:
    """Two groups of two on a chain of equal layers: four stages, one machine each."""
    even = Layers([3.0] * 4, [1.0] * 4, [50.0] * 4, [(0, 1), (1, 2), (2, 3)])  # type: ignore[arg-type]
    found = plan(even, [(2, 10.0), (2, 1.0)])
    assert found.time == 3.0
    assert [stage.layers for stage in found.stages] == [(0,), (1,), (2,), (3,)]
    assert {stage.replicas for stage in found.stages} == {(1, 1)}


def test_the_time_of_one_replicated_stage() -> None:
    """Three machines: (8 + 4 * 2 * 90 / (10 * 3)) / 3; then two such groups at bandwidth 5."""
    assert plan(CHAIN, [(3, 10.0)]).data_parallel_time == pytest.approx(32 / 3)
    twice = plan(CHAIN, [(3, 10.0), (2, 5.0)]).data_parallel_time
    assert twice == pytest.approx((32 / 3 + 4 * 90 / (5 * 2) / 3) / 2)


def test_an_idle_machine_may_be_better() -> None:
    """Synchronising any layer on a slow link costs more than the longest layer."""
    heavy = Layers([4.0, 4.0], [0.0, 0.0], [90.0, 90.0], [(0, 1)])  # type: ignore[arg-type]
    assert plan(heavy, [(3, 1.0)]).time > 4.0
    assert plan(heavy, [(3, 1.0)], fewer_machines=True).time == 4.0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"levels": []}, "levels"),
        ({"levels": [(0, 1.0)]}, "levels"),
        ({"levels": [(2, 0.0)]}, "levels"),
        ({"levels": [(2, math.nan)]}, "levels"),
        ({"levels": [2]}, "levels"),
        ({"states": "cuts"}, "states"),
        ({"max_states": 0}, "max_states"),
    ],
)
def test_arguments_out_of_range_are_named(change: dict[str, Any], word: str) -> None:
    with pytest.raises(OptionError, match=word):
        plan(CHAIN, **({"levels": [(2, 1.0)]} | change))


def test_too_many_stages_are_infeasible() -> None:
    with pytest.raises(InfeasibleError, match="3 states uses 4 machines with unreplicated stages"):
        plan(CHAIN, [(4, 1.0)], straight=True)


def test_too_many_states_end_the_search() -> None:
    for states, most in (("antichains", 2), ("ideals", 2)):
        with pytest.raises(NoPlanFound, match="states"):
            plan(CHAIN, [(2, 1.0)], states=states, max_states=most)
        assert plan(CHAIN, [(2, 1.0)], states=states, max_states=3).states == 3
