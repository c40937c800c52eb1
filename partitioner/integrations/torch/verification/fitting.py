"""Corrections fitted to measured runs, so that the simulated times come near to the measured ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, fields, replace
from itertools import combinations

import numpy as np

from partitioner.base.errors import OptionError
from partitioner.integrations.torch.verification.comparing import RunComparison, simulated_batches
from partitioner.integrations.torch.verification.corrections import Corrections
from partitioner.workload.graph import Floats

LEAST = 4  # as many runs as there are terms
STEPS = 8  # least-squares problems at most
STEP = 1e-4  # of a term, in which the simulated times are taken as linear
ERROR = 0.1  # of a time, that is expected with the right terms
# deviations of the terms that count as much as that error; those in ms are parts of the time per sample
LIKELY = np.array([0.2, 0.02, 0.5, 0.1])


def fit_corrections(runs: Sequence[RunComparison]) -> Corrections:
    """Return the corrections under which the simulated times are nearest to the measured ones.

    Time per sample and time of the batch of each run count by their relative errors, of which the sum of
    squares is made small, with no term below zero. A few runs hardly tell the terms apart, so each term's
    deviation from no correction counts, too (ridge regression): as much as an error of a tenth if it is 0.2
    for `compute`, 0.5 for `transfer`, a tenth of the time per sample for `pass_time`, and a fiftieth of it
    for `message`. Simulated times are linear in the terms as long as the same passes and transfers decide
    them; least squares are solved until these do not change any more. Runs that do not judge a prediction,
    because other programs were running, are left out.

    Raises
    ------
    OptionError
        If fewer than four runs are left, one for each term.
    """
    judged = [run for run in runs if not run.run.doubt]
    if len(judged) < LEAST:
        rule = f"must have at least {LEAST} that judge a prediction, for four terms"
        raise OptionError(f"runs: {len(judged)} of {len(runs)} judge a prediction: {rule}")
    now = best = Corrections()
    least, (weights, none) = np.inf, _ridge(judged)
    for _ in range(STEPS):
        slopes = [row for run in judged for row in _slopes(run, now)]
        rows, values = np.vstack([*slopes, weights]), np.concatenate([np.ones(len(slopes)), none])
        error = float(((rows @ astuple(now) - values) ** 2).sum())
        if error < least:
            least, best = error, now
        now = Corrections(*_not_negative(rows, values))
        if now == best:
            break
    return best


def _ridge(runs: Sequence[RunComparison]) -> tuple[Floats, Floats]:
    """Return rows and values of least squares that keep terms near none; shapes (4, 4) and (4,)."""
    time = float(np.median([run.run.time_per_sample for run in runs]))
    weights = ERROR / (LIKELY * [1.0, time, 1.0, time])
    return np.diag(weights), weights * astuple(Corrections())


def _slopes(run: RunComparison, now: Corrections) -> Floats:
    """Return how the simulated times, as parts of the measured ones, grow with each term; shape (2, 4)."""
    here = _predicted(run, now)
    found = [
        (_predicted(run, replace(now, **{name: getattr(now, name) + STEP})) - here) / STEP
        for name in (each.name for each in fields(Corrections))
    ]
    measured = np.array([run.run.time_per_sample, run.run.batches[1]])
    return np.asarray(np.array(found).T / measured[:, None])


def _predicted(run: RunComparison, corrections: Corrections) -> Floats:
    """Return the simulated time per sample and time of the batch with corrected costs."""
    timelines = simulated_batches(run.workload, run.plan, run.run, corrections)
    few, many = (each.makespan for each in timelines)
    fewer, more = run.run.microbatches
    return np.array([(many - few) / (more - fewer), many])


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
