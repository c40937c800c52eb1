"""The first parts of a search: those that the user gave, and the best chain, which also gives a bound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from partitioner.methods.imported import imported
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.method import Method, Outcome, Part, Settings, part_numbers
from partitioner.problem.variants import PartsProblem

PLAIN = "partitioner.methods.dp.by_measure:solve_dp"
EXTENDED = "partitioner.methods.dp.pipeline.solve:solve_pipeline"
CHAIN_STEPS = 100_000_000  # limit for the chain in a deterministic run
CHAIN_SHARE, CHAIN_SECONDS = 0.2, 60.0  # limits for the chain: share of the time left, and seconds
SHORT_SHARE, SHORT_SECONDS = 0.6, 1.0  # a larger share of the time left, up to this many seconds


def find_start(search: SplitSearch, cyclic: float) -> None:
    """Offer the first parts to the search, until it is over, and raise its bound by what the chain proves.

    `cyclic` is a lower bound on the splits that are no chains.
    """
    for parts in _starts(search, cyclic):
        search.offer(parts)
        search.look()
        if search.over:
            return


def _starts(search: SplitSearch, cyclic: float) -> Iterator[Sequence[Part]]:
    problem, settings = search.problem, search.settings
    if settings.incumbent is not None:
        yield settings.incumbent
    by_pass = problem.measure.passes == 2
    method: Method = imported(PLAIN if by_pass or problem.chain.pipeline is None else EXTENDED)
    left = settings.clock.left
    share = max(CHAIN_SHARE, min(SHORT_SHARE, SHORT_SECONDS / max(left, SHORT_SECONDS)))
    limited = within(settings, share, CHAIN_SECONDS)
    chain = method(problem.chain, replace(limited, incumbent=None, gap=0.0))
    search.raise_bound(min(chain.bound, cyclic))
    parts = lifted(problem, chain)
    if parts is not None:
        yield parts


def within(settings: Settings, share: float, seconds: float) -> Settings:
    """Return the settings with a deadline of `seconds`, or of a share of the time left if that is less.

    In a deterministic run the limit on steps is lowered instead.
    """
    if settings.deterministic:
        return replace(settings, step_limit=min(settings.step_limit, CHAIN_STEPS))
    return settings.within(min(share * settings.clock.left, seconds))


def lifted(problem: PartsProblem, chain: Outcome) -> list[Part] | None:
    """Return the parts of a chain as parts of a problem with another contraction; None without a chain.

    A supernode goes to the part with the heaviest of its nodes. The parts may break rules of the problem.
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
