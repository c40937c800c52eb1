"""First parts: what the user gave, and the best chain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.imported import imported
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.method import Method, Outcome, Part, Settings, part_numbers
from partitioner.problem.problem import Problem

PLAIN = "partitioner.methods.dp.exact:solve_exact"
EXTENDED = "partitioner.methods.dp.pipeline.solve:solve_pipeline"
CHAIN_STEPS = 100_000_000  # in a deterministic run
CHAIN_SHARE, CHAIN_SECONDS = 0.2, 60.0
SHORT_SHARE, SHORT_SECONDS = 0.6, 1.0  # the chain may take that share of the time that is left if it is short


def find_start(search: SplitSearch) -> None:
    """Offer the search what can be had quickly, until it is over."""
    for parts in _starts(search):
        search.offer(parts)
        search.look()
        if search.over:
            return


def _starts(search: SplitSearch) -> Iterator[Sequence[Part]]:
    problem, settings = search.problem, search.settings
    if settings.incumbent is not None:
        yield settings.incumbent
    if problem.chain is not None:
        place = PLAIN if problem.chain.pipeline is None else EXTENDED
        method: Method = imported(place)
        left = settings.clock.left
        share = max(CHAIN_SHARE, min(SHORT_SHARE, SHORT_SECONDS / max(left, SHORT_SECONDS)))
        chain = within(settings, share, CHAIN_SECONDS)
        parts = lifted(problem, method(problem.chain, replace(chain, incumbent=None, gap=0.0)))
        if parts is not None:
            yield parts


def within(settings: Settings, share: float, seconds: float) -> Settings:
    """Return the settings with a deadline of `seconds`, or of a share of the time that is left.

    In a deterministic run they have fewer steps instead.
    """
    if settings.deterministic:
        return replace(settings, step_limit=min(settings.step_limit, CHAIN_STEPS))
    return settings.within(min(share * settings.clock.left, seconds))


def lifted(problem: Problem, chain: Outcome) -> list[Part] | None:
    """Return the parts of a chain as parts of a problem contracted otherwise; None if there is no chain.

    A supernode goes where its heaviest share is; whether the parts obey the rules is for the caller to see.
    """
    if chain.parts is None:
        return None
    number = part_numbers(chain.parts, chain.problem.n)
    weight = chain.problem.time.sum(axis=(0, 1))[chain.problem.member]
    home = np.zeros(problem.n, dtype=np.int64)
    order = np.argsort(weight, kind="stable")
    home[problem.member[order]] = number[chain.problem.member[order]]
    parts = [Part(part.kind, np.flatnonzero(home == i)) for i, part in enumerate(chain.parts)]
    return [part for part in parts if len(part.nodes)]
