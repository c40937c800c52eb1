"""Integer programs for convex and free splits (paper, Sections 5.1.3 and 5.2, Appendix C).

The state of a run for a convex or free split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from partitioner.base.registry import imported
from partitioner.methods.baselines.trivial import solve_single
from partitioner.methods.bounds.cover import Covering
from partitioner.methods.bounds.cyclic import least_cyclic
from partitioner.methods.bounds.least_part import least_part
from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.ip.descent import EFFORT as DESCENT
from partitioner.methods.ip.descent import Descent, descend
from partitioner.methods.ip.formulate import formulate
from partitioner.methods.ip.splits import SplitSearch
from partitioner.methods.ip.turns import Turns
from partitioner.methods.loads import part_numbers
from partitioner.methods.method import Method, Outcome, Part, Settings, no_split
from partitioner.methods.rules import is_hopeless
from partitioner.methods.solvers.backends.catalogue import candidates, pick
from partitioner.methods.solvers.portfolio import Slot, SolverPortfolio, is_worth_while, slots_of
from partitioner.methods.solvers.worker_pool import WorkerPool
from partitioner.problem.variants import PartsProblem

PLAIN = "partitioner.methods.dp.exact:solve_dp"
EXTENDED = "partitioner.methods.dp.pipeline_links:solve_pipeline"


@dataclass(frozen=True)
class SplitEffort:
    """How the time of method ``ip`` is shared.

    Measured by the clock, 6 s each, at half and at twice each value on three published free splits (gnmt,
    inceptionv3 and bert6 training) while other programs ran: the mean of the values changes by at most
    0.25 %, which is what a field changes that does not come into play.

    Parameters
    ----------
    chain_steps, chain_share, chain_seconds
        The limit on steps for the chain in a deterministic run; in others the share of the time left, and
        seconds.
    short_share, short_seconds
        A larger share of the time left, up to this many seconds.
    look
        Seconds between two readings of the clock while only the local search runs.
    hurry
        Seconds: with less time a first plan is found before solvers start.
    stating, share
        Seconds for each pin and device, at most, to formulate a program and send it to a solver, and the
        share of the time that is left which that may take.
    """

    chain_steps: int = 100_000_000
    chain_share: float = 0.2
    chain_seconds: float = 60.0
    short_share: float = 0.6
    short_seconds: float = 1.0
    look: float = 0.05
    hurry: float = 10.0
    stating: float = 3e-6
    share: float = 0.1


EFFORT = SplitEffort()


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
    share = max(
        EFFORT.chain_share, min(EFFORT.short_share, EFFORT.short_seconds / max(left, EFFORT.short_seconds))
    )
    limited = within(settings, share, EFFORT.chain_seconds)
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
        return replace(settings, step_limit=min(settings.step_limit, EFFORT.chain_steps))
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


def tighten(search: SplitSearch, relaxation: Relaxation) -> None:
    """Improve parts and bound until they meet, or neither makes progress."""
    descent = Descent(search)
    covering = Covering(search.problem, relaxation, descent.left, memory=search.settings.memory_budget)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(descent.run)
        try:
            while not (search.over or descent.idle or running.done()):
                stop = _stop(search, descent)
                covering.rise(search.value, search.settings.gap, stop, search.raise_bound)
                while not (stop() or descent.idle or running.done()):
                    wait([running], EFFORT.look)
        finally:
            descent.leaving = True
    running.result()
    descent.hand_over()


def cover(search: SplitSearch, relaxation: Relaxation) -> None:
    """Improve only the bound, which holds for any limits on parts; local search does not obey such limits."""
    descent = Descent(search)

    def stop() -> bool:
        search.look()
        return search.over or descent.late

    covering = Covering(search.problem, relaxation, descent.left, memory=search.settings.memory_budget)
    covering.rise(search.value, search.settings.gap, stop, search.raise_bound)


def _stop(search: SplitSearch, descent: Descent) -> Callable[[], bool]:
    """Return a function that says whether the covering bound should start again, or end."""
    value = search.value

    def stop() -> bool:
        search.look()
        descent.hand_over()
        descent.give_way(1)
        return search.over or descent.late or search.value < value * (1 - DESCENT.progress)

    return stop


TIGHTEN = "partitioner.methods.ip.solve:tighten"  # these load a solver of linear programs
COVER = "partitioner.methods.ip.solve:cover"
IN_TURNS = "partitioner.methods.ip.turns:tighten_in_turns"
UNSTATED = "no solver was started: too little time was left to formulate and solve the integer program"


def solve_ip(problem: PartsProblem, settings: Settings) -> Outcome:
    """Find a first plan, then let solvers prove it or find better ones: method ``ip``.

    Raises
    ------
    BackendUnavailable
        If the named backend is not installed, or its licence does not cover a program of this size.
    """
    if is_hopeless(problem):
        return no_split(problem)
    candidates(settings.backend)
    relaxation = relax(problem)
    search = SplitSearch(problem, settings, least_part(problem, settings, relaxation.bound))
    cyclic = least_cyclic(problem, relaxation)
    if settings.deterministic:
        return _solve_in_turns(search, relaxation, cyclic)
    attainable = search.bound > relaxation.bound
    alone = settings.clock.left < EFFORT.hurry or attainable or cyclic > search.bound
    if alone:
        find_start(search, cyclic)
    if attainable and not search.over:
        descend(search)
    with closing(WorkerPool()) as pool:
        portfolio = SolverPortfolio(search, pool, _slots(search), formulate)
        if settings.workers > 1 and not search.over:
            portfolio.begin()
        if not alone:
            find_start(search, cyclic)
        if not search.over:
            imported(TIGHTEN if problem.pipeline is None else COVER)(search, relaxation)
        portfolio.run()
        portfolio.end()
    if search.best is None and settings.expired:
        for parts in filter(None, [solve_single(problem, settings).parts]):
            search.offer(parts)
    return search.outcome("+".join(search.words) or portfolio.backend)


def _slots(search: SplitSearch) -> list[Slot]:
    """Return slots for the backends; none if there is no time to formulate the program."""
    settings, problem = search.settings, search.problem
    left = settings.clock.left
    pins = len(problem.nets.pins.items) * int(problem.count.sum())
    named = settings.backend != "auto"
    if not named and (
        search.closed or not is_worth_while(left) or pins * EFFORT.stating > EFFORT.share * left
    ):
        search.notes += [] if search.closed else [UNSTATED]
        search.cut_short = True
        return []
    task = search.task()
    backends, note = pick(settings.backend, formulate(task).program)
    search.notes += [note] if note else []
    return slots_of(backends, settings.workers, settings.seed, searches=not task.in_line)


def _solve_in_turns(search: SplitSearch, relaxation: Relaxation, cyclic: float) -> Outcome:
    """Return the outcome of a deterministic run: one task after another, none limited by time."""
    task = search.task()
    backends, note = pick(search.settings.backend, formulate(task).program)
    search.notes += [note] if note else []
    find_start(search, cyclic)
    imported(IN_TURNS if search.problem.pipeline is None else COVER)(search, relaxation)
    with closing(WorkerPool()) as pool:
        Turns(search, pool, list(backends), formulate, not task.in_line).run()
    return search.outcome("+".join(search.words) or backends[0].name)
