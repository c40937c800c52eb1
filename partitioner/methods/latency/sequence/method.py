"""Method ``latency_dp``: the best sequence of blocks (paper, Section 5.1.1 with sums), then a beam search.

A sequence of ideals cuts the graph into blocks, each for one device. If one ran after the other, the
sample would take the sum of their lengths; it takes less if some need not wait for each other. The
dynamic program finds the least sum, first over linear orders, then over all ideals if these are few
enough; a beam search over the same ideals then finds plans whose blocks overlap.

The search for sequences of blocks over several lattices, and the best plan that it finds.

The assignment of a sequence of blocks to devices, and their order on each.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from partitioner.methods.dp.forms import blocks_of, merged
from partitioner.methods.dp.forms import split_blocks as unmerged
from partitioner.methods.dp.lattice import Lattice, chain_lattice, ideal_lattice
from partitioner.methods.dp.linear import refined, starting_orders
from partitioner.methods.latency.layout import SubgraphLayout, latency, outcome_of
from partitioner.methods.latency.path import longest_path
from partitioner.methods.latency.sequence.beam import BeamSearch, label_bytes
from partitioner.methods.latency.sequence.chains import coarsened, sequenced
from partitioner.methods.latency.sequence.effort import EFFORT
from partitioner.methods.latency.sequence.packing import is_counted, packed
from partitioner.methods.latency.sequence.sequence_table import (
    BYTES_PER_STATE,
    SequenceModel,
    SequenceTable,
    is_every_split,
    sequence_model_of,
    states_of,
)
from partitioner.methods.loads import part_numbers
from partitioner.methods.method import Outcome, OutOfTimeError, Part, Settings, no_split
from partitioner.problem.arrays import Ints
from partitioner.problem.variants import ChainProblem, SampleProblem


@dataclass(eq=False)
class SequenceSearch:
    """The search for sequences, with the best ones found so far.

    Parameters
    ----------
    problem, settings
        A problem for latency, and the settings of the run.

    Attributes
    ----------
    total
        The least sum of a sequence that fits on the devices.
    value, layout, blocks, model
        The least latency, and its plan: as a layout, and as blocks of the model's supernodes.
    bound
        A lower bound on the latency; 0 if sums give none.
    orders, steps, ideals, width
        The number of orders tried, of steps walked, of ideals in the largest lattice, and of plans that the
        beam search keeps at each of its ideals.
    subgraphs, share
        How many blocks each device may currently hold, and the number of parts its memory is divided into.
    """

    problem: SampleProblem
    settings: Settings
    total: float = field(default=np.inf, init=False)
    blocks: list[Part] = field(default_factory=list, init=False)
    model: SequenceModel | None = field(default=None, init=False)
    layout: SubgraphLayout | None = field(default=None, init=False)
    value: float = field(default=np.inf, init=False)
    bound: float = field(default=0.0, init=False)
    orders: int = field(default=0, init=False)
    steps: int = field(default=0, init=False)
    ideals: int = field(default=0, init=False)
    width: int = field(default=0, init=False)
    subgraphs: int = field(default=1, init=False)
    share: int = field(default=1, init=False)

    def run(self) -> None:
        """Search with one subgraph of each pass per device, then with more, until the run must end."""
        with suppress(OutOfTimeError):
            self._run()

    def _run(self) -> None:
        q = self.problem.subgraphs
        for self.subgraphs, self.share in [(1, 1)] if q == 1 else [(1, 1), (q, 1), (q, q)]:
            if self.subgraphs == 1 or not self.settings.expired:
                self._search()

    def _search(self) -> None:
        """Search all ideals of the least contracted graph with few enough; else only linear orders."""
        searched = False
        chain: ChainProblem | None = self.problem.chain
        while chain is not None and not (searched and self.settings.expired):
            model = self._model(*sequenced(self.problem, chain))
            self.try_orders(model)
            searched, lattice = True, self._lattice(model)
            if lattice is not None and self.fill(model, lattice):
                return
            chain = chain.coarser
        self._zoom()

    def try_orders(self, model: SequenceModel) -> None:
        """Try the orders of method ``dpl``, then as many that keep the blocks of the best plan separate."""
        rng = np.random.default_rng(self.settings.seed)
        for order in starting_orders(model.chain, self.settings.orders, rng):
            if self.orders and self.settings.expired:
                return
            self._try_order(model, order)
        for _ in range(self.settings.orders):
            if self.model is model and not self.settings.expired:
                self._try_order(model, refined(model.chain, self.blocks, rng))

    def _try_order(self, model: SequenceModel, order: Ints) -> None:
        self.orders += 1
        block = blocks_of(model.chain, order, (), late=self._is_late(model))
        if block is None:
            self.fill(model, chain_lattice(order))
        else:
            coarse = self._model(merged(model.chain, block), block[model.member])
            self.fill(coarse, chain_lattice(np.arange(coarse.chain.n)))

    def _is_late(self, model: SequenceModel) -> bool:
        """Whether the time that is left is too short for an order in many blocks."""
        return self.settings.clock.left * EFFORT.ordered_per_second < model.chain.n

    def _zoom(self) -> None:
        """Contract the insides of the best plan's blocks at random until all ideals can be walked.

        Without it the latency of Inception-v3 on 4 and 8 devices is 0.1 and 0.4 % longer.
        """
        rng, failures = np.random.default_rng(self.settings.seed), 0
        share = EFFORT.first_share
        while failures < self.settings.orders and self.model is not None and not self.settings.expired:
            model, before = self.model, self.value
            number = part_numbers(self.blocks, model.chain.n)
            chain, label = coarsened(model.chain, number, share, rng)
            lattice = ideal_lattice(chain, EFFORT.few_ideals, EFFORT.covers * EFFORT.few_ideals)
            if lattice is None and share == 1:
                return
            if lattice is None:
                share = min(1.0, share + EFFORT.share_step)
                continue
            self.fill(self._model(chain, label[model.member]), lattice)
            if self.value < before:
                self.blocks, self.model = unmerged(self.blocks, label), model
            failures = 0 if self.value < before else failures + 1

    def fill(self, model: SequenceModel, lattice: Lattice) -> bool:
        """Look for better plans in a lattice; return False if a limit ended the search."""
        self.ideals = max(self.ideals, lattice.size)
        most = max(2, self.settings.memory_budget // (BYTES_PER_STATE * lattice.size))
        states = states_of(self.problem, self.subgraphs, most)
        table = SequenceTable(self._shared(model), lattice, states, self.total)
        table.fill(self.settings, min(self.settings.step_limit, EFFORT.most_work // len(states.following)))
        self.steps += table.steps
        totals = table.totals()
        for total, state in totals[: EFFORT.tried]:
            self._offer(model, table.blocks(state), total)
        if not table.complete:
            return False
        widest = self.share == 1 and self.subgraphs == self.problem.subgraphs
        if widest and is_every_split(model, lattice, states):
            self.bound = min((total for total, _ in totals), default=self.total)
        return self._overlap(model, lattice, table.steps)

    def _overlap(self, model: SequenceModel, lattice: Lattice, steps: int) -> bool:
        """Look for plans whose blocks overlap; return False if there are too many `steps` for that."""
        states = states_of(self.problem, self.subgraphs, EFFORT.states)
        buckets = len(states.following)
        room = self.settings.memory_budget // (lattice.size * buckets * label_bytes(model))
        work = max(1, steps * buckets)
        if room == 0 or work > EFFORT.most_work:
            return False
        width = min(EFFORT.width, room, max(1, EFFORT.fair_work // work))
        beam = BeamSearch(self._shared(model), lattice, states, width, EFFORT.length_weight, self.value)
        beam.run(self.settings, self.settings.step_limit)
        self.steps, self.width = self.steps + beam.steps, width
        for blocks in beam.plans(EFFORT.tried):
            self._offer(model, blocks)
        return True

    def _model(self, chain: ChainProblem, member: Ints) -> SequenceModel:
        return sequence_model_of(self.problem, chain, member, self.settings)

    def _shared(self, model: SequenceModel) -> SequenceModel:
        """Return the model with the memory of a device divided by `share`, so that its blocks fit."""
        memory = np.where(is_counted(self.problem), model.costs.memory / self.share, np.inf)
        return replace(model, costs=model.costs._replace(memory=memory))

    def _offer(self, model: SequenceModel, blocks: list[Part], total: float = np.inf) -> None:
        layout = packed(self.problem, model.member, blocks)
        if layout is None:
            return
        value = latency(self.problem, layout)
        self.total = min(self.total, total)
        if value < self.value:
            self.value, self.layout, self.blocks, self.model = value, layout, blocks, model
            self.settings.report_progress("sequences", self.orders, 0, self.value, self.bound)

    def _lattice(self, model: SequenceModel) -> Lattice | None:
        states = len(states_of(self.problem, self.subgraphs, EFFORT.states).following)
        limit = self.settings.memory_budget // (BYTES_PER_STATE * states + 8 * EFFORT.covers + 50)
        if self.settings.deadline is not None:
            limit = min(limit, int(self.settings.clock.left * EFFORT.ideals_per_second))
        limit = min(limit, EFFORT.ideals)
        return ideal_lattice(model.chain, limit, EFFORT.covers * limit, lambda: self.settings.expired)


def solve_sequence(problem: SampleProblem, settings: Settings) -> Outcome:
    """Return the best plan of the dynamic program and the beam search: method ``latency_dp``.

    The bound is the longest path in best times, unless the graph is one path without a backward pass: there
    all blocks wait for one another, every contiguous split is a sequence, and the least sum is the optimum.
    """
    path = longest_path(problem)
    if np.isinf(path):
        return no_split(problem)
    search = SequenceSearch(problem, settings)
    search.run()
    if search.layout is None and np.isinf(search.bound):
        return no_split(problem)
    bound = max(path, search.bound)
    stop = settings.ended(bound, search.value)
    return outcome_of(
        problem, search.layout, search.value, bound, stop,
        statistics={
            "orders": search.orders, "steps": search.steps, "ideals": search.ideals,
            "sum": search.total, "width": search.width,
        },
    )  # fmt: skip
