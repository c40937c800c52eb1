"""Tables of the least total length of sequences of blocks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.weights import remaining_weights
from partitioner.methods.latency.sequence.chains import BlockCosts, costs_of
from partitioner.methods.latency.sequence.least_work import additive_weights
from partitioner.methods.latency.sequence.packing import is_counted
from partitioner.methods.latency.sequence.sequence_kernel import sweep
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import ChainProblem, SampleProblem

BYTES_PER_STATE = 13
SLICE = 2_000_000


@dataclass(frozen=True, eq=False)
class SequenceModel:
    """A contraction of the problem to the supernodes of blocks, with the costs of blocks.

    Parameters
    ----------
    problem
        A problem for latency.
    chain, member
        Its contraction, and the supernode of every node.
    costs, weight
        The costs of blocks, and for each supernode a weight that a block with it costs at least.
    """

    problem: SampleProblem
    chain: ChainProblem
    member: Ints
    costs: BlockCosts
    weight: Floats


def sequence_model_of(
    problem: SampleProblem, chain: ChainProblem, member: Ints, settings: Settings
) -> SequenceModel:
    """Return the model of a contraction."""
    costs = costs_of(problem, chain.n, member, settings)
    return SequenceModel(problem, chain, member, costs, additive_weights(costs))


@dataclass(frozen=True, eq=False)
class SequenceStates:
    """The vectors of used devices, and how many devices of each kind a sequence may use.

    Parameters
    ----------
    count
        Shape (K,): the largest number of blocks on kinds that are counted, 0 for others.
    following
        Shape (S, K): the number of the vector with one more block on a kind: -1 if there can be none, the
        same number if blocks are not counted.
    stride
        Shape (K,): the difference between the numbers of these vectors.
    """

    count: Ints
    following: Ints
    stride: Ints


def states_of(problem: SampleProblem, subgraphs: int, most: int) -> SequenceStates:
    """Return the vectors of used devices with `subgraphs` blocks each, at most about `most` of them."""
    counted = is_counted(problem)
    count = np.where(counted, problem.count * subgraphs, 0)
    while np.prod(count + 1, dtype=object) > most and count.max() > 1:
        count[count.argmax()] //= 2
    radix = count + 1
    stride = np.where(counted, np.concatenate((np.ones(1, np.int64), np.cumprod(radix)[:-1])), 0)
    states = np.arange(int(np.prod(radix)))[:, None]
    used = states // np.maximum(stride, 1) % radix
    available = np.where(counted, used < count, problem.count > 0)
    return SequenceStates(count, np.where(available, states + stride, -1).astype(np.int64), stride)


def is_every_split(model: SequenceModel, lattice: Lattice, states: SequenceStates) -> bool:
    """Whether the graph is one path, so that all its contiguous splits are sequences in the lattice.

    Then all blocks wait for one another, and the least sum is a lower bound on the latency.
    """
    problem, counted = model.problem, is_counted(model.problem)
    source, target = problem.successors.owners(), problem.successors.items
    unmerged = model.chain.n == problem.n and int((target == source + 1).sum()) == problem.n - 1
    unlimited = np.array_equal(states.count, np.where(counted, problem.count * problem.subgraphs, 0))
    simple = not problem.backward.any() and np.array_equal(counted, problem.pays)
    return unmerged and unlimited and simple and lattice.linear


class SequenceTable:
    """The best sequences through a lattice, for each vector of used devices.

    Parameters
    ----------
    model, lattice, states
        The model, a lattice over its supernodes, and the vectors of used devices.
    cutoff
        Only sequences of less than this total length are looked for.
    """

    def __init__(self, model: SequenceModel, lattice: Lattice, states: SequenceStates, cutoff: float) -> None:
        self.model, self.lattice, self.states, self.cutoff = model, lattice, states, cutoff
        shape = lattice.size, len(states.following)
        self.value, self.origin = np.full(shape, np.inf), np.empty(shape, np.int32)
        self.kind = np.empty(shape, np.int8)
        self.value[0, 0] = 0.0
        self.steps, self.complete = 0, False

    def fill(self, settings: Settings, step_limit: int) -> None:
        """Walk up the lattice; then `complete` says whether the walk ended without reaching a limit."""
        remaining, ideal = remaining_weights(self.lattice, self.model.weight), 0
        while ideal < self.lattice.size - 1:
            ideal, steps = sweep(
                self.lattice, self.model.costs, self.states.following, remaining, self.cutoff,
                self.value, self.origin, self.kind, ideal, SLICE,
            )  # fmt: skip
            self.steps += steps
            if ideal < self.lattice.size - 1 and (settings.expired or self.steps > step_limit):
                return
        self.complete = True

    def totals(self) -> list[tuple[float, int]]:
        """Return total length and number of every vector of used devices with a sequence, best first."""
        return sorted((float(total), s) for s, total in enumerate(self.value[-1]) if np.isfinite(total))

    def blocks(self, state: int) -> list[Part]:
        """Return the blocks of the best sequence for a vector of used devices."""
        blocks, ideal = [], self.lattice.size - 1
        while ideal:
            kind, before = int(self.kind[ideal, state]), int(self.origin[ideal, state])
            blocks.append(Part(kind, self.lattice.difference(ideal, before)))
            ideal, state = before, state - int(self.states.stride[kind])
        return blocks[::-1]
