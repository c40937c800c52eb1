"""Exchanges of kinds find chains that obey all rules, the optimum of small problems among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from partitioner.methods.dp import exchange
from partitioner.methods.dp._exchange_core import ExchangeModel, Stages, total_excess
from partitioner.methods.dp.exchange import KindExchange
from partitioner.methods.dp.linear import LinearSearch, best_linear
from partitioner.methods.dp.many_kinds import pays_for_nets
from partitioner.methods.loads import value_of
from partitioner.methods.method import Settings
from partitioner.methods.rules import obeys
from partitioner.problem.variants import ChainProblem
from tests.methods.dp.test_many_kinds import random_search
from tests.methods.slow_parameters import slow

LITTLE = replace(exchange.EFFORT, attempt=4_000, fresh_moves=100, patience=3)


def free_search(seed: int) -> tuple[LinearSearch[ChainProblem], float] | None:
    """The first chains of a random workload without transfers, and the optimum; None if there is none."""
    found = random_search(seed)
    if found is None or found[1] is None or pays_for_nets(found[0].linear.problem):
        return None
    many, best = found
    linear = best_linear(many.linear.problem, many.linear.relaxation, Settings(orders=1))
    return None if linear.stages is None or best is None else (linear, best)


@pytest.mark.parametrize("seeds", [range(300), slow(range(300, 4000))])
def test_reaches_the_optimum_and_never_what_breaks_a_rule(
    seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the optimum as the threshold a chain is found, below it none, with limits of memory too."""
    monkeypatch.setattr(exchange, "EFFORT", LITTLE)
    asked = found = 0
    for seed in seeds:
        case = free_search(seed)
        if case is None or case[0].problem.count.sum() < 2 or case[1] <= 0:
            continue
        linear, best = case
        assert linear.stages is not None
        search, answer = KindExchange(linear.problem, seed), None
        assert search.attempt(linear.stages, 0.999 * best) is None, seed
        for _ in range(20):
            answer = answer or search.attempt(linear.stages, best * (1 + 1e-9))
        asked += 1
        if answer is None:
            continue
        value, stages = answer
        found += 1
        assert value == pytest.approx(best) == value_of(linear.problem, stages), seed
        assert obeys(linear.problem, stages), seed
    assert asked > len(seeds) // 10
    assert found > 0.98 * asked


def test_the_excess_is_the_sum_of_what_stages_exceed() -> None:
    """Two stages at threshold 5 with room for 2: a load of 6, and 3 bytes where 2 fit."""
    none = np.zeros(4, dtype=np.int64)
    empty = np.zeros(0, dtype=np.int64)
    work = np.array([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]])
    model = ExchangeModel(work, np.array([1.0, 2.0, 0.0]), np.full(2, 2.0), none, empty, none, empty)
    stages = Stages(np.array([0, 0, 1]), np.array([0, 1]), np.zeros(2), np.zeros(2))
    assert total_excess(model, stages, 5.0) == pytest.approx(1 / 5 + 1 / 2)
    assert stages.load.tolist() == [3.0, 6.0]


def test_is_part_of_the_search_over_many_kinds_where_transfers_are_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A seed makes the same moves in each run; where a kind pays for transfers, none are made."""
    monkeypatch.setattr(exchange, "EFFORT", replace(LITTLE, later=0))
    moves = []
    for seed in range(120):
        searches = [random_search(seed, 9, 4, Settings(seed=3)) for _ in range(2)]
        if searches[0] is None or searches[1] is None:
            continue
        many, again = searches[0][0], searches[1][0]
        many.run()
        again.run()
        problem = many.linear.problem
        assert (many.exchange is None) == (pays_for_nets(problem) or problem.count.sum() < 2), seed
        if many.exchange is not None and again.exchange is not None:
            assert many.exchange.moves == again.exchange.moves, seed
            moves.append(many.exchange.moves)
    assert max(moves) > 0
