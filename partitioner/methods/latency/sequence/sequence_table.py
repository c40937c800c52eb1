"""Tables of the least total length of sequences of blocks.

Additive lower bounds on sequences of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.dp.weights import remaining_weights
from partitioner.methods.latency.sequence.chains import BlockCosts, costs_of
from partitioner.methods.latency.sequence.packing import is_counted
from partitioner.methods.latency.sequence.sequence_kernel import sweep
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import ChainProblem, SampleProblem

PATHS = 16


def additive_weights(costs: BlockCosts) -> Floats:
    """Return weights of supernodes, shape (n,), whose sum over a block is a lower bound on its length.

    On kinds that pay, a block takes the time of all its nodes; on others that of its longest path, which is
    at least the mean over any paths through its nodes. The paths are chosen one by one so that the weights,
    the lesser of both for each half, become large.
    """
    owner = np.empty(len(costs.backward), dtype=np.int64)
    owner[costs.node] = np.repeat(np.arange(len(costs.size)), np.diff(costs.node_start))
    weight = np.zeros(len(costs.size))
    allowed = np.isfinite(costs.work[:, 0])
    for w in (0, 1):
        busy = np.where(allowed, costs.work[:, w], np.inf)
        paying = busy[costs.pays].min(axis=0, initial=np.inf)
        alone = np.where(allowed[:, owner], costs.time, np.inf)[~costs.pays].min(axis=0, initial=np.inf)
        alone[costs.backward != w] = 0.0
        share = np.zeros(len(weight))
        for _ in range(PATHS):
            lacking = np.where(np.isfinite(alone), alone, 0.0) * (share < paying)[owner]
            path = _heaviest_path(costs, w, lacking)
            np.add.at(share, owner[path], alone[path] / PATHS)
        barred = ~allowed[~costs.pays].any(axis=0)
        weight += np.where(barred, paying, np.minimum(share, paying))
    return np.where(np.isfinite(weight), weight, 0.0)


def _heaviest_path(costs: BlockCosts, w: int, gain: Floats) -> list[int]:
    total, origin, best = gain.tolist(), [-1] * len(gain), -1
    for u in costs.node.tolist():
        if costs.backward[u] != w:
            continue
        for b in costs.before[costs.before_start[u] : costs.before_start[u + 1]].tolist():
            if origin[u] < 0 or total[b] > total[origin[u]]:
                origin[u] = b
        total[u] += total[origin[u]] if origin[u] >= 0 else 0.0
        best = u if best < 0 or total[u] > total[best] else best
    path = []
    while best >= 0:
        path.append(best)
        best = origin[best]
    return path


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
