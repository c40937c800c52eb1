"""The dynamic program over linear orders (paper, Section 5.1.2): DPL, over many orders.

The quality of an order depends on how ties are broken, so several orders are tried. Then the best chain
is refined: an order that keeps its stages one after another, but shuffles each inside, holds this chain
and can only hold better ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from partitioner.methods.bounds.relaxation import Relaxation, relax
from partitioner.methods.dp import chain
from partitioner.methods.dp.bracket import Bracket, ChainSearch, Spent, TableBracket
from partitioner.methods.dp.forms import blocks_of, merged, split_blocks, with_merged_kinds
from partitioner.methods.dp.lattice import Lattice, chain_lattice, ideal_lattice
from partitioner.methods.loads import part_numbers, value_of
from partitioner.methods.method import Outcome, Part, Settings, meets, no_split
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.orders import by_label, depth_first, random_order, reverse_postorder
from partitioner.problem.problem import Problem
from partitioner.problem.variants import ChainProblem

MOST_NAMED = 10  # numbers in a note
Chain = TypeVar("Chain", bound=ChainProblem)
Judged = TypeVar("Judged", bound=ChainProblem, contravariant=True)


@dataclass(frozen=True)
class LinearEffort:
    """How large lattices and tables may be.

    Parameters
    ----------
    covers_per_ideal
        The covers that arrays of a lattice hold for each ideal.
    ideals_per_second
        The ideals that are enumerated for each second of the time left.
    step_budget
        The steps after which no further order is tried.
    most_single_kinds
        The most kinds of a single device that a table over one order counts, as each doubles it.
    """

    covers_per_ideal: int = 12
    ideals_per_second: int = 1_000_000
    step_budget: int = 600_000_000
    most_single_kinds: int = 10


EFFORT = LinearEffort()


@dataclass(frozen=True)
class ChainModel(Generic[Judged]):
    """The functions that define the cost of chains of one type of problem, and the search for the best one.

    Parameters
    ----------
    tables
        Makes the source of tables over a lattice.
    bracket
        Makes the search for the best chain of a lattice.
    value
        Returns the objective of stages that hold every supernode.
    bound
        Returns a lower bound on the objective of all chains, by the relaxation.
    state_bytes
        Returns the bytes that a table takes for each ideal.
    longer
        The divisor of the number of linear orders, where each takes longer.
    loose
        Notes on what the bound leaves out, for a gap that only linear orders were searched for.
    listed, large
        Whether there is a search that lists stages in place of a table of all sets of devices, and whether it
        is the one, as that table would be too large.
    """

    tables: Callable[[Judged, Relaxation, Lattice], Any]
    bracket: Callable[[Any, Settings, float, float], ChainSearch]
    value: Callable[[Judged, Sequence[Part]], float]
    bound: Callable[[Judged, Relaxation], float]
    state_bytes: Callable[[Judged], int]
    longer: int = 1
    loose: tuple[str, ...] = ()
    listed: bool = False
    large: bool = False


PLAIN: ChainModel[ChainProblem] = ChainModel(
    tables=chain.ChainTables,
    bracket=TableBracket,
    value=value_of,
    bound=lambda _, relaxation: relaxation.bound,
    state_bytes=chain.state_bytes,
)


def lattice_within(
    problem: Chain, settings: Settings, model: ChainModel[Chain] = PLAIN, most: int | None = None
) -> Lattice | None:
    """Return the lattice of all ideals; None if it does not fit the memory budget or has more than `most`."""
    limit = _max_ideals(problem, settings, model)
    limit = limit if most is None else min(limit, most)
    try:
        return ideal_lattice(problem, limit, EFFORT.covers_per_ideal * limit, lambda: settings.expired)
    except MemoryError:  # the process has less than the budget
        return None


def too_many(problem: Chain, settings: Settings, model: ChainModel[Chain] = PLAIN) -> str:
    """Return a note that the lattice does not fit the memory budget, or that the run ended before."""
    if settings.expired:
        return "the run ended before all ideals were enumerated: only linear orders were searched"
    most, budget = _max_ideals(problem, settings, model), f"{settings.memory_budget / 2**30:.3g} GiB"
    if most == 0:
        kinds = int((problem.count > 0).sum())
        table = f"no table over {kinds} kinds of devices"
        return f"the memory budget of {budget} holds {table}: only linear orders were searched"
    return (
        f"more ideals than fit in memory, at most {most:,} in the memory budget of {budget}: the search was "
        "not exhaustive"
    )


def ideal_bytes(problem: Chain, model: ChainModel[Chain]) -> int:
    """Return the bytes of an ideal: each takes its states, its covers and 50 more bytes."""
    return model.state_bytes(problem) + 8 * EFFORT.covers_per_ideal + 4 * len(problem.count) + 50


def _max_ideals(problem: Chain, settings: Settings, model: ChainModel[Chain]) -> int:
    """Return how many ideals the budget and the time allow."""
    limit = settings.memory_budget // ideal_bytes(problem, model)
    if settings.deadline is not None:
        limit = min(limit, int(settings.clock.left * EFFORT.ideals_per_second))
    return max(0, min(limit, (2**31 - 1) // EFFORT.covers_per_ideal))


def solve_linear(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain over linear orders, with a bound that holds for every split: method ``dpl``."""
    return with_merged_kinds(_solve_kinds, problem, settings)


def _solve_kinds(problem: ChainProblem, settings: Settings) -> Outcome:
    """Return the best chain over linear orders where no two kinds are identical."""
    relaxation = relax(problem)
    if np.isinf(relaxation.bound):
        return no_split(problem)
    return best_linear(problem, relaxation, settings).outcome()


class LinearSearch(Generic[Chain]):
    """The best chain over the linear orders tried so far.

    Parameters
    ----------
    problem, relaxation, settings
        The problem, its relaxation and the settings of the run.
    model
        The cost of chains.

    Attributes
    ----------
    bound
        A lower bound on the objective of all chains.
    value, stages
        The best chain and its value; None and infinity if there is none.
    orders, steps
        How many orders were tried, and how many steps were walked up the lattices.
    """

    def __init__(
        self, problem: Chain, relaxation: Relaxation, settings: Settings, model: ChainModel[Chain] = PLAIN
    ) -> None:
        self.problem, self.relaxation, self.settings, self.model = problem, relaxation, settings, model
        self.bound = model.bound(problem, relaxation)
        self.affordable = _affordable(problem, relaxation, settings.memory_budget, model)
        self.stages: Sequence[Part] | None = settings.incumbent
        self.value = np.inf if self.stages is None else model.value(problem, self.stages)
        self.orders = self.steps = 0

    @property
    def closed(self) -> bool:
        """Whether the value meets the lower bound within the requested gap."""
        return np.isfinite(self.value) and meets(self.bound, self.value, self.settings.gap)

    @property
    def done(self) -> bool:
        """Whether the gap is closed or a limit is reached."""
        return self.closed or self.settings.expired or self.steps > EFFORT.step_budget

    def attempt(self, order: Ints, cuts: Sequence[int] = ()) -> bool:
        """Solve one linear order, in which a known chain has its `cuts`; return whether the best improves."""
        block = blocks_of(self.problem, order, cuts, late=self.settings.expired)
        self.orders += 1
        lattice = chain_lattice(order if block is None else np.arange(int(block.max()) + 1))
        return bool(self.search(block, lambda _: lattice))

    def search(self, block: Ints | None, lattice_of: Callable[[Chain], Lattice | None]) -> bool | None:
        """Find the best chain in a lattice of blocks of supernodes.

        Parameters
        ----------
        block
            Shape (n,): the block of each supernode; None if each is a block of its own.
        lattice_of
            Function that returns the lattice of the problem in which blocks are merged; None to give up.

        Returns
        -------
        bool or None
            Whether the best chain so far has improved; None without a lattice.
        """
        problem, relaxation = self.affordable, self.relaxation
        if block is not None:
            problem, relaxation = merged(problem, block), relaxation.merged(block)
        lattice = lattice_of(problem)
        if lattice is None:
            return None
        tables = self.model.tables(problem, relaxation, lattice)
        bracket = self.model.bracket(tables, self.settings, self.bound, self.value)
        bracket.narrow(from_top=np.isfinite(self.value))
        self.steps += bracket.steps
        if bracket.stages is None:
            return False
        return self.offer(
            bracket.value, bracket.stages if block is None else split_blocks(bracket.stages, block)
        )

    def offer(self, value: float, stages: Sequence[Part]) -> bool:
        """Keep a chain if it is better than the best so far, and return whether it is."""
        if value >= self.value:
            return False
        self.value, self.stages = value, stages
        self.settings.report_progress("orders", self.orders, 0, self.value, self.bound)
        return True

    def outcome(self, note: str = "") -> Outcome:
        """Return the outcome with the best chain; `note` says why no others were searched."""
        bound, used = self.bound, self.affordable.count
        stop = self.settings.stop_reason
        if meets(bound, self.value):
            stop, bound = "optimal", self.value
        elif self.closed:
            stop = "gap"
        notes = [note] if note else []
        if not np.array_equal(used, self.problem.count):
            counts = ", ".join(map(str, used[:MOST_NAMED])) + ", ..." * (len(used) > MOST_NAMED)
            notes.append(f"at most {counts} devices of each kind were considered, to keep the table small")
        notes += () if self.closed else self.model.loose
        statistics = {"orders": self.orders, "steps": self.steps}
        return Outcome(
            self.problem, self.stages, self.value, bound, stop,
            notes=tuple(notes), statistics=statistics,
        )  # fmt: skip


class LinearBracket(Bracket[Spent]):
    """A bracket that begins where a search over linear orders has ended, and narrows its ends.

    Parameters
    ----------
    linear, settings
        The search over linear orders, and the settings from now on.
    """

    def __init__(self, linear: LinearSearch[ChainProblem], settings: Settings) -> None:
        self.linear, self.settings = linear, settings

    @property
    def bound(self) -> float:
        """The bound of the search over linear orders."""
        return self.linear.bound

    @bound.setter
    def bound(self, bound: float) -> None:
        self.linear.bound = bound

    @property
    def value(self) -> float:
        """The least value known."""
        return self.linear.value

    @value.setter
    def value(self, value: float) -> None:
        self.linear.value = value

    @property
    def stages(self) -> Sequence[Part] | None:
        """The best chain known."""
        return self.linear.stages

    @stages.setter
    def stages(self, stages: Sequence[Part] | None) -> None:
        self.linear.stages = stages


def best_linear(
    problem: Chain, relaxation: Relaxation, settings: Settings, model: ChainModel[Chain] = PLAIN
) -> LinearSearch[Chain]:
    """Try the starting orders, then refine until as many attempts in a row fail; return the search."""
    search = LinearSearch(problem, relaxation, settings, model)
    rng, count = np.random.default_rng(settings.seed), -(-settings.orders // model.longer)
    for order in starting_orders(search.problem, count, rng):
        if search.orders and search.done:
            return search
        search.attempt(order)
    failures = 0
    while failures < count and not search.done and search.stages is not None:
        cuts = np.cumsum([len(stage.nodes) for stage in search.stages])[:-1]
        improved = search.attempt(refined(search.problem, search.stages, rng), cuts.tolist())
        failures = 0 if improved else failures + 1
    return search


def starting_orders(problem: Problem, count: int, rng: np.random.Generator) -> Iterator[Ints]:
    """Yield up to `count` topological orders, of which the first ones are not random."""
    after, before = problem.successors, problem.predecessors
    number = np.arange(problem.n, dtype=np.float64)
    first: tuple[Callable[[], Ints], ...] = (
        lambda: number.astype(np.int64),
        lambda: reverse_postorder(after, number),
        lambda: reverse_postorder(after, -number),
        lambda: depth_first(after, before, number),
        lambda: depth_first(after, before, problem.time[0].sum(axis=0) - _sent(problem)),
    )
    fastest = np.where((problem.count > 0)[:, None], problem.work(), np.inf).argmin(axis=0)
    if np.ptp(fastest):  # supernodes that are fastest on one kind follow each other
        first += (lambda: by_label(after, before, fastest), lambda: by_label(after, before, -fastest))
    for order in first[:count]:
        yield order()
    for attempt in range(len(first), count):
        priority = rng.random(problem.n)
        yield (reverse_postorder(after, priority) if attempt % 2 else depth_first(after, before, priority))


def _sent(problem: Problem) -> Floats:
    """Return the cost of the tensors that each supernode sends: late in an order, they stay on one device."""
    cost = problem.nets.cost * problem.transfer_factor.max(initial=0.0)
    return np.asarray(np.bincount(problem.nets.source, cost, problem.n))


def refined(problem: Problem, stages: Sequence[Part], rng: np.random.Generator) -> Ints:
    """Return a random topological order in which the stages still follow one another."""
    stage = part_numbers(stages, problem.n)
    order = random_order(problem.successors, problem.predecessors, rng)
    return order[np.argsort(stage[order], kind="stable")]


def _affordable(problem: Chain, relaxation: Relaxation, budget: int, model: ChainModel[Chain]) -> Chain:
    """Return the problem with fewer devices, so that a table over one order fits the memory budget.

    Of kinds with one device at most ``EFFORT.most_single_kinds`` are kept, because each doubles the table.
    Slow devices are left out first; none is left out if every device must be used.
    """
    if problem.limits.all_devices:
        return problem
    count = problem.count.copy()
    while model.state_bytes(replace(problem, count=count)) * (problem.n + 1) > budget and count.max() > 1:
        count[np.where(count > 1, relaxation.time_price, np.inf).argmin()] //= 2
    while (count == 1).sum() > EFFORT.most_single_kinds:
        count[np.where(count == 1, relaxation.time_price, np.inf).argmin()] = 0
    return replace(problem, count=count)
