"""The choice of ways in a stage is the best of all choices; Piper's rule is the one that its program has."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partitioner.methods.dp._alternatives_stages_core import least_sum
from tests.methods.slow_parameters import slow

Case = tuple[list[list[tuple[float, float]]], float]


def random_case(rng: np.random.Generator) -> Case:
    """Choices among pairs of value and memory, round or not, and a limit that often binds."""
    whole = rng.random() < 0.4
    choices = []
    for _ in range(int(rng.integers(1, 8))):
        figures = rng.uniform(0, 9, (int(rng.integers(1, 5)), 2))
        figures = figures.round() if whole else figures
        choices.append([(float(value), float(memory)) for value, memory in figures])
    if rng.random() < 0.4:  # equal choices
        choices = [choices[0]] * len(choices)
    most = sum(max(memory for _, memory in ways) for ways in choices)
    return choices, most * float(rng.uniform(0.1, 1.1))


def solved(case: Case, cutoff: float = np.inf, greedy: bool = False) -> tuple[float, list[int]]:
    choices, limit = case
    start = np.concatenate(([0], np.cumsum([len(ways) for ways in choices])))
    figures = np.array([way for ways in choices for way in ways])
    chosen = np.zeros(len(choices), dtype=np.int64)
    value, memory = np.ascontiguousarray(figures[:, 0]), np.ascontiguousarray(figures[:, 1])
    found = least_sum(len(choices), start, value, memory, limit, cutoff, greedy, chosen)
    return found, chosen.tolist()


def least(case: Case) -> float:
    choices, limit = case
    sums = [
        (sum(value for value, _ in ways), sum(memory for _, memory in ways))
        for ways in itertools.product(*choices)
    ]
    return min((value for value, memory in sums if memory <= limit), default=np.inf)


@pytest.mark.parametrize("count", [400, slow(20_000)])
def test_it_is_the_best_of_all_choices(count: int) -> None:
    bound = 0
    for seed in range(count):
        rng = np.random.default_rng(seed)
        case = random_case(rng)
        best = least(case)
        assert solved(case)[0] == pytest.approx(best, rel=1e-12, abs=1e-12)
        greedy = solved(case, greedy=True)[0]
        assert np.isinf(greedy) == np.isinf(best) and greedy >= best - 1e-9
        bound += greedy > best + 1e-9
        if np.isfinite(best):
            assert np.isinf(solved(case, best * (1 - 1e-9) - 1e-9)[0])
            assert solved(case, best + 1e-9)[0] <= best + 1e-9
    assert bound > count / 100


def test_the_rule_of_piper_overshoots() -> None:
    """Two nodes of time 1: one swap saves 1 for 0.011, the other 100 for 0.99; one unit is to be saved."""
    case = ([[(1.0, 100.0), (1.011, 99.0)], [(1.0, 100.0), (1.99, 0.0)]], 199.0)
    value, chosen = solved(case, greedy=True)
    assert solved(case)[0] == pytest.approx(2.011) and value == pytest.approx(2.99) and chosen == [0, 3]


def test_many_equal_choices_take_no_time() -> None:
    """Equal choices have few sums that do not dominate one another."""
    case = ([[(1.0, 3.0), (1.7, 1.0)]] * 400, 700.5)
    assert solved(case)[0] == pytest.approx(400 + 250 * 0.7)
