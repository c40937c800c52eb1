"""Pipelines over links of unequal speed: levels of devices, or explicit groups with a link for each pair.

The dynamic program is asked for the best pipeline of up to three forms of the problem, one after the other:

    narrow    those that its tables hold: over levels pipelines that visit the groups one after the other,
              over explicit groups those whose stages have their devices in one group each
    fastest   all pipelines, on links that are as fast as the fastest: a bound for any devices, and stages
              that are then priced on the real links
    any       all pipelines, where devices are few

Example: two stages of time 1 in two groups with slowdown 3, and a tensor of cost 1 between: both loads are
1 + 3, and the bound on equal links is 2.
"""

from __future__ import annotations

from partitioner.methods.dp.any_groups import (
    best_on_any_devices,
    better_on_real_links,
    is_best_on_any_devices,
    with_notes,
)
from partitioner.methods.dp.equal_replicas import EqualReplicas, asks_for_equal, numbers_of
from partitioner.methods.dp.forms import on_fastest_links, with_replicas, within_groups
from partitioner.methods.dp.pipeline import EFFORT, best_in_form, bounded, has_many_states, least_value_of
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.variants import PipelineProblem


def solve_pipeline(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Find the best pipeline over equal links, levels or explicit groups: method ``pipeline``."""
    if not asks_for_equal(problem):
        outcome = _over_links(problem, settings)
    else:
        choices = (with_replicas(problem, count) for count in numbers_of(problem))
        outcome = EqualReplicas(_over_links, least_value_of).best(problem, choices, settings)
    return with_notes(outcome, problem)


def _over_links(problem: PipelineProblem, settings: Settings) -> Outcome:
    """Return the best pipeline of the narrow form, or a better one on any devices.

    Over groups the form on the fastest links comes first, for its bound; where tables are large, a bound that
    takes no search will do. Over levels that form is solved only if the best pipeline of the narrow one is
    not proven to be the best on any devices.
    """
    narrow, fastest = within_groups(problem), on_fastest_links(problem)
    flat = None
    if len(problem.pipeline.link) and has_many_states(narrow.problem):
        flat = bounded(fastest)
    elif len(problem.pipeline.link):
        flat = best_in_form(fastest, settings.for_share(EFFORT.flat_share))
    if flat is not None and flat.infeasible:
        return no_split(problem)
    found = best_in_form(narrow, settings, known=0.0 if flat is None else flat.bound)
    if is_best_on_any_devices(problem, found):
        return found
    if flat is None or (found.parts is None and flat.parts is None):
        flat = best_in_form(fastest, settings.for_share(EFFORT.flat_share))
    found = better_on_real_links(problem, settings, found, flat)
    return best_on_any_devices(problem, settings, found, best_in_form)
