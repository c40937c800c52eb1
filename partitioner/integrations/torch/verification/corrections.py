"""What a prediction leaves out, fitted to measured runs: a factor on compute, and the cost of messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.integrations.torch.verification.comparing import RunComparison
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Floats, Graph

LEAST = 3  # as many runs as there are terms


@dataclass(frozen=True)
class Corrections:
    """How the time of a device follows from what a graph says; times are in ms.

    Parameters
    ----------
    compute
        What the nodes' times are multiplied with: contention, and what a run does between operators.
    message
        The time that each message adds on the device that receives it, whatever its size.
    transfer
        What the transfers' times are multiplied with.
    """

    compute: float = 1.0
    message: float = 0.0
    transfer: float = 1.0

    def applied(self, graph: Graph) -> Graph:
        """Return a graph with the corrected costs, for which ``solve`` finds plans and ``simulate`` times.

        Examples
        --------
        >>> graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], [0.5])
        >>> found = Corrections(1.2, 0.25, 2.0).applied(graph)
        >>> found.time.tolist(), found.cost.tolist()
        ([[1.2, 1.2]], [1.25])
        """
        cost = np.where(graph.cost > 0, self.message + self.transfer * graph.cost, 0.0)
        return replace(graph, time=self.compute * graph.time, cost=cost)


def fit_corrections(runs: Sequence[RunComparison]) -> Corrections:
    """Return the corrections under which the predicted times per sample are nearest to the measured ones.

    The slowest device of each run is fitted by least squares of relative errors, with no term below zero.
    Runs that do not judge a prediction, because other programs were running, are left out.

    Raises
    ------
    OptionError
        If fewer than three runs are left, one for each term.
    """
    judged = [run for run in runs if not run.run.doubt]
    if len(judged) < LEAST:
        rule = f"must have at least {LEAST} that judge a prediction, for three terms"
        raise OptionError(f"runs: {len(judged)} of {len(runs)} judge a prediction: {rule}")
    measured = np.array([run.run.time_per_sample for run in judged])
    terms = np.array([_terms(run.simulated) for run in judged]) / measured[:, None]
    compute, message, transfer = _not_negative(terms, np.ones(len(judged)))
    return Corrections(compute, message, transfer)


def _terms(timeline: Timeline) -> tuple[float, float, float]:
    """Return compute, the number of messages and transfers in of the slowest device, for a sample."""
    taken = timeline.end - timeline.begin
    count = len(timeline.devices)
    parts = [
        np.bincount(timeline.table.row, weights, count) / timeline.table.microbatches
        for weights in (taken[:, 1], taken[:, 0] > 0, taken[:, 0])
    ]
    slowest = int(np.argmax(parts[0] + parts[2]))
    return float(parts[0][slowest]), float(parts[1][slowest]), float(parts[2][slowest])


def _not_negative(terms: Floats, values: Floats) -> list[float]:
    """Return the least-squares solution without negative entries, by trying which of them are zero."""
    best, found = np.inf, np.zeros(terms.shape[1])
    for size in range(1, terms.shape[1] + 1):
        for chosen in map(list, combinations(range(terms.shape[1]), size)):
            part = np.linalg.lstsq(terms[:, chosen], values, rcond=None)[0]
            error = float(((terms[:, chosen] @ part - values) ** 2).sum())
            if (part >= 0).all() and error < best:
                best, found = error, np.zeros(terms.shape[1])
                found[chosen] = part
    return list(found.tolist())
