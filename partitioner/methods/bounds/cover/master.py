"""The linear program that finds better weights from the columns so far: cutting planes in a trust region.

The largest ratio of what the supernodes weigh together to what the devices can hold is a linear
program once the columns are known:

    max sum of w_v  with  sum over k of count_k c_k = n  and  column . w <= c_k  for every column of k.

Its optimum is too large while columns are missing, so the weights are kept near the best ones known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from ortools.math_opt.python import mathopt

from partitioner.methods.bounds.cover.pricing import Columns
from partitioner.methods.solvers.backends.apart import apart
from partitioner.methods.solvers.backends.backend import Answer
from partitioner.methods.solvers.backends.guard import guarded
from partitioner.problem.arrays import Floats, Ints

SHRINK, GROW, WIDEN, WHOLE = 0.85, 1.5, 10.0, 10.0


class Master:
    """The linear program and its trust region.

    Parameters
    ----------
    count
        Shape (kinds,): devices of every kind.
    weight
        Shape (n,): the first weights.
    columns
        The columns known so far.

    Attributes
    ----------
    centre
        Shape (n,): the best weights so far, scaled so that the devices together hold `n`.
    """

    def __init__(self, count: Ints, weight: Floats, columns: Sequence[Columns]) -> None:
        self.n = len(weight)
        self.model = mathopt.Model()
        self.weights = [self.model.add_variable(lb=0.0) for _ in range(self.n)]
        self.holds = [self.model.add_variable(lb=0.0) for _ in count]
        capacity = sum(int(c) * hold for c, hold in zip(count, self.holds, strict=True))
        self.model.add_linear_constraint(capacity == self.n)
        self.model.maximize(mathopt.fast_sum(self.weights))
        self.centre = weight
        self.radius = np.maximum(weight, weight.mean())
        for each in columns:
            self.add(each)

    def add(self, columns: Columns) -> None:
        """Add a column for every kind."""
        for column, hold in zip(columns, self.holds, strict=True):
            members = np.flatnonzero(column.share).tolist()
            row = mathopt.LinearSum(float(column.share[v]) * self.weights[v] for v in members)
            self.model.add_linear_constraint(row <= hold)

    def move(self, weight: Floats, better: bool) -> None:
        """Move the centre to better weights and widen the trust region, or keep the centre and narrow it."""
        if better:
            self.centre = weight
        self.radius = self.radius * (GROW if better else SHRINK)

    def best(self, least: float) -> Floats | None:
        """Return the best weights near the centre if the known columns allow them a ratio above `least`.

        The trust region widens until there are some; None if there are none anywhere.
        """
        while True:
            trial = self._near()
            if trial is not None and trial[1] > least:
                return trial[0]
            if self.radius.min() > WHOLE * self.n:
                return None
            self.radius = self.radius * WIDEN

    def _near(self) -> tuple[Floats, float] | None:
        """Return the best weights in the trust region and the ratio that the known columns allow them."""
        low, high = np.maximum(self.centre - self.radius, 0.0), self.centre + self.radius
        for variable, least, most in zip(self.weights, low.tolist(), high.tolist(), strict=True):
            variable.lower_bound, variable.upper_bound = least, most
        answer = apart(lambda: guarded(self._solved))
        if answer.values is None:
            return None
        weight = np.maximum(answer.values, 0.0)
        return np.where(weight > 1e-7, weight, 0.0), answer.bound / self.n

    def _solved(self) -> Answer:
        result = mathopt.solve(self.model, mathopt.SolverType.HIGHS)
        if not result.has_primal_feasible_solution():
            return Answer("infeasible")
        return Answer("optimal", np.array(result.variable_values(self.weights)), result.objective_value())
