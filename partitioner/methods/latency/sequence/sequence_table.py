"""Tables of the least total length of sequences of blocks.

Additive lower bounds on sequences of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp._walk_core import new_path, walk_of
from partitioner.methods.dp.lattice import Lattice, remaining_weights
from partitioner.methods.latency.sequence._blocks_core import (
    BlockSums,
    add,
    empty_block,
    leave,
    lost,
    reach,
    remove,
)
from partitioner.methods.latency.sequence.chains import BlockCosts, costs_of
from partitioner.methods.latency.sequence.effort import EFFORT
from partitioner.methods.latency.sequence.packing import is_counted
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import ChainProblem, SampleProblem


class SumTally(NamedTuple):
    """The current block, and the table of sequences that it is written to: I ideals, S vectors of devices.

    Parameters
    ----------
    costs, block
        The costs, and the current block.
    path, done
        Shapes (n + 2, K, 2) and (K, N): by depth the longest path through the block by kind and pass, and
        when its nodes are done, on kinds that do not pay for transfers.
    following
        Shape (S, K): the vector with one more device of a kind, -1 if there is none left; the same vector for
        kinds that need not be counted.
    remaining, cutoff
        Shape (I,): a lower bound on the length of sequences outside an ideal; only sequences of less than the
        cutoff are looked for.
    least, low
        Shapes (S,) and (K,): the values of the vectors that are useful where the block begins, infinity for
        others, and the least by kind of those that have a device of it left.
    value, origin, kind
        Shape (I, S): the length of the best sequence, the ideal before its last block, and the kind of that.
    """

    costs: BlockCosts
    block: BlockSums
    path: Floats
    done: Floats
    following: Ints
    remaining: Floats
    cutoff: float
    least: Floats
    low: Floats
    value: Floats
    origin: NDArray[np.int32]
    kind: NDArray[np.int16]


def _enter_sum(tally, start, ideal, depth, v):  # type: ignore[no-untyped-def]
    """Add supernode `v` and offer the block to the vectors; return whether a larger one may be of use."""
    costs, block, deeper = tally.costs, tally.block, depth + 1
    add(costs, block, v, depth)
    _run_nodes(tally, v, depth)
    moved, compute, path, following = block.moved, block.compute, tally.path, tally.following
    communication, outside, possible = costs.communication, tally.remaining[ideal], False
    into0, out0, into1, out1 = moved[deeper, 0], moved[deeper, 1], moved[deeper, 2], moved[deeper, 3]
    for k in range(len(costs.memory)):
        compute[deeper, k, 0] = compute[depth, k, 0] + costs.work[k, 0, v]
        compute[deeper, k, 1] = compute[depth, k, 1] + costs.work[k, 1, v]
        ahead, behind = compute[deeper, k, 0], compute[deeper, k, 1]
        if tally.low[k] == np.inf or block.size[deeper] > costs.memory[k] or ahead == np.inf:
            continue
        if costs.pays[k]:
            length = joint_load(ahead, into0, out0, communication)
            length += joint_load(behind, into1, out1, communication)
            bound = joint_load(ahead, into0, 0.0, communication) + behind + outside
        else:
            length = bound = path[deeper, k, 0] + path[deeper, k, 1]
        if tally.low[k] + bound >= tally.cutoff:
            continue
        possible = True
        for s in range(len(following)):
            t = following[s, k]
            total = tally.least[s] + length
            if t >= 0 and total < tally.value[ideal, t] and total + outside < tally.cutoff:
                tally.value[ideal, t] = total
                tally.origin[ideal, t] = start
                tally.kind[ideal, t] = k
    if not possible:
        remove(costs, block, v)
    return possible


@njit(cache=True, inline="always")
def _run_nodes(tally, v, depth):  # type: ignore[no-untyped-def]
    """Write the longest paths of the block with `v` to `depth` + 1, for kinds that do not pay."""
    costs, path, done = tally.costs, tally.path, tally.done
    for k in range(len(costs.memory)):
        if costs.pays[k]:
            continue
        ahead, behind = path[depth, k, 0], path[depth, k, 1]
        for i in range(costs.node_start[v], costs.node_start[v + 1]):
            u = costs.node[i]
            ready = 0.0
            for j in range(costs.before_start[u], costs.before_start[u + 1]):
                if tally.block.present[costs.before[j]]:
                    ready = max(ready, done[k, costs.before[j]])
            done[k, u] = ready + costs.time[k, u]
            if costs.backward[u]:
                behind = max(behind, done[k, u])
            else:
                ahead = max(ahead, done[k, u])
        path[depth + 1, k, 0], path[depth + 1, k, 1] = ahead, behind


_walk_sums = walk_of(_enter_sum, leave, reach, lost)


@njit(cache=True, nogil=True, _nrt=False)
def sweep(lattice, path, tally, first, budget):  # type: ignore[no-untyped-def]
    """Extend the sequences that end in ideals `first`, `first` + 1, ... by one block.

    Parameters
    ----------
    lattice, path, tally
        See :class:`Lattice`, :class:`WalkPath` and :class:`SumTally`, whose table is written.
    first, budget
        The ideal to start with, and the number of steps after which to return.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    ideals, steps = len(lattice.parent), 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        if _list_states(tally, start):
            steps += _walk_sums(lattice, path, start, np.inf, tally)
    return ideals, steps


@njit(cache=True, inline="always")
def _list_states(tally, start):  # type: ignore[no-untyped-def]
    """Write the values of useful vectors at an ideal to `least`, and the least by kind to `low`.

    A vector is useless if another one reaches the ideal with fewer devices in no more time. Returned is
    whether some vector is useful.
    """
    value, following, least, low = tally.value[start], tally.following, tally.least, tally.low
    cutoff = tally.cutoff - tally.remaining[start]
    states, kinds = following.shape
    found = False
    low[:] = np.inf
    least[:] = np.inf
    for s in range(states):  # at first the least of all vectors with fewer devices
        mine = value[s]
        worthy = mine < cutoff and mine < least[s]
        for k in range(kinds):
            t = following[s, k]
            if t > s:
                least[t] = min(least[t], min(least[s], mine))
        least[s] = mine if worthy else np.inf
        if worthy:
            found = True
            for k in range(kinds):
                if following[s, k] >= 0:
                    low[k] = min(low[k], mine)
    return found


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
        for _ in range(EFFORT.paths):
            lacking = np.where(np.isfinite(alone), alone, 0.0) * (share < paying)[owner]
            path = _heaviest_path(costs, w, lacking)
            np.add.at(share, owner[path], alone[path] / EFFORT.paths)
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


BYTES_PER_STATE = 14


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
        self.model, self.lattice, self.states = model, lattice, states
        shape = lattice.size, len(states.following)
        costs, kinds = model.costs, len(model.costs.memory)
        self.tally = SumTally(
            costs=costs,
            block=empty_block(costs),
            path=np.zeros((len(costs.size) + 2, kinds, 2)),
            done=np.zeros((kinds, len(costs.backward))),
            following=states.following,
            remaining=remaining_weights(lattice, model.weight),
            cutoff=cutoff,
            least=np.zeros(shape[1]),
            low=np.zeros(kinds),
            value=np.full(shape, np.inf),
            origin=np.empty(shape, np.int32),
            kind=np.empty(shape, np.int16),
        )
        self.tally.value[0, 0] = 0.0
        self.steps, self.complete = 0, False

    def fill(self, settings: Settings, step_limit: int) -> None:
        """Walk up the lattice; then `complete` says whether the walk ended without reaching a limit."""
        path, ideal = new_path(len(self.model.weight)), 0
        while ideal < self.lattice.size - 1:
            ideal, steps = sweep(self.lattice, path, self.tally, ideal, EFFORT.sweep_slice)
            self.steps += steps
            if ideal < self.lattice.size - 1 and (settings.expired or self.steps > step_limit):
                return
        self.complete = True

    def totals(self) -> list[tuple[float, int]]:
        """Return total length and number of every vector of used devices with a sequence, best first."""
        return sorted((float(total), s) for s, total in enumerate(self.tally.value[-1]) if np.isfinite(total))

    def blocks(self, state: int) -> list[Part]:
        """Return the blocks of the best sequence for a vector of used devices."""
        blocks, ideal = [], self.lattice.size - 1
        while ideal:
            kind, before = int(self.tally.kind[ideal, state]), int(self.tally.origin[ideal, state])
            blocks.append(Part(kind, self.lattice.difference(ideal, before)))
            ideal, state = before, state - int(self.states.stride[kind])
        return blocks[::-1]
