"""Method ``max_load``: the chain for the largest throughput, run one sample at a time (paper, Appendix F)."""

from __future__ import annotations

import numpy as np

from partitioner.methods.dp.exact import solve_exact
from partitioner.methods.latency.layout import SubgraphLayout, latency, obeys, one_subgraph_each, outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.method import Outcome, Part, Settings
from partitioner.methods.places import places_of
from partitioner.problem.variants import SampleProblem


def solve_max_load(problem: SampleProblem, settings: Settings) -> Outcome:
    """Find the chain with the least largest load, with a subgraph of each pass per device: ``max_load``."""
    bound = longest_path(problem)
    chain = solve_exact(problem.chain, settings)
    layout = None if chain.parts is None else layout_of_chain(problem, chain)
    value = np.inf if layout is None else latency(problem, layout)
    stop = "heuristic" if chain.stop_reason in ("optimal", "gap") else chain.stop_reason
    return outcome_of(problem, layout, value, bound, stop, notes=chain.notes, statistics=chain.statistics)


def layout_of_chain(problem: SampleProblem, chain: Outcome) -> SubgraphLayout | None:
    """Return the stages of a chain as subgraphs; None if they break a rule of the problem."""
    assert chain.parts is not None
    member = chain.problem.member[np.argsort(problem.member)]
    parts = [Part(part.kind, np.flatnonzero(np.isin(member, part.nodes))) for part in chain.parts]
    layout = one_subgraph_each(places_of(problem, parts))
    return layout if obeys(problem, layout) else None
