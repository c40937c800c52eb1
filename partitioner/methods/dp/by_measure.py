"""The dynamic programs by the measure of the problem: loads as a whole, or by pass."""

from __future__ import annotations

from partitioner.methods.dp.exact import solve_exact
from partitioner.methods.dp.linear import solve_linear
from partitioner.methods.dp.passes.solve import solve_passes, solve_passes_linear
from partitioner.methods.method import Outcome, Settings
from partitioner.problem.variants import ChainProblem


def solve_dp(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain by the exact dynamic program if the ideals fit in memory: method ``dp``."""
    return (solve_exact if problem.measure.passes == 1 else solve_passes)(problem, settings)


def solve_dpl(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain over linear orders, with a bound that holds for every split: method ``dpl``."""
    return (solve_linear if problem.measure.passes == 1 else solve_passes_linear)(problem, settings)
