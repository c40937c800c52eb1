"""The linear program over the paths and the stages known so far."""

from __future__ import annotations

import numpy as np
from ortools.math_opt.python import mathopt

from partitioner.methods.solvers.backends.apart import apart
from partitioner.problem.arrays import Floats


class PathMaster:
    """The weights of paths with which the cheapest of the known stages cost the most.

    The length of a path is linear in the times of the passes, which are the same for all samples:

        max z  with  sum over paths of weight x length >= z  for all known stages, and weights that sum to 1.

    Parameters
    ----------
    paths
        How often each path has the passes of every stage and kind, shape (stages, 3) each.
    """

    def __init__(self, paths: list[Floats]) -> None:
        self.model = mathopt.Model()
        self.value = self.model.add_variable(lb=-np.inf)
        self.total = self.model.add_linear_constraint(lb=1.0, ub=1.0)
        self.model.maximize(self.value)
        self.paths: list[Floats] = []
        self.times: list[Floats] = []
        self.weights: list[mathopt.Variable] = []
        self.rows: list[mathopt.LinearConstraint] = []
        for path in paths:
            self.add_path(path)

    def add_path(self, path: Floats) -> None:
        """Add a path."""
        weight = self.model.add_variable(lb=0.0)
        self.total.set_coefficient(weight, 1.0)
        for row, times in zip(self.rows, self.times, strict=True):
            row.set_coefficient(weight, float((path * times).sum()))
        self.paths.append(path)
        self.weights.append(weight)

    def add_times(self, times: Floats) -> None:
        """Add stages by the times of their passes, shape (stages, 3)."""
        row = self.model.add_linear_constraint(lb=0.0)
        row.set_coefficient(self.value, -1.0)
        for weight, path in zip(self.weights, self.paths, strict=True):
            row.set_coefficient(weight, float((path * times).sum()))
        self.times.append(times)
        self.rows.append(row)

    def solve(self) -> tuple[Floats, Floats] | None:
        """Return the weighted path and the mixture of the known stages' times; None if the solver fails.

        Both have shape (stages, 3).
        """
        answer = apart(self._solved)
        if answer is None:
            return None
        weights, shares = answer
        weights, shares = np.maximum(weights, 0.0), np.abs(shares)
        if not weights.sum() > 0 or not shares.sum() > 0:
            return None
        path = np.tensordot(weights / weights.sum(), np.stack(self.paths), 1)
        return path, np.tensordot(shares / shares.sum(), np.stack(self.times), 1)

    def _solved(self) -> tuple[Floats, Floats] | None:
        result = mathopt.solve(self.model, mathopt.SolverType.GLOP)
        if not result.has_primal_feasible_solution() or not result.has_dual_feasible_solution():
            return None
        return np.array(result.variable_values(self.weights)), np.array(result.dual_values(self.rows))
