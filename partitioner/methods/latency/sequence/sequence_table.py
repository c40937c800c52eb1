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
from partitioner.methods.dp.lattice import Lattice, remaining_weights
from partitioner.methods.latency.sequence._blocks_core import BlockWalk, deepen, leave, new_walk, next_block
from partitioner.methods.latency.sequence.chains import BlockCosts, costs_of
from partitioner.methods.latency.sequence.packing import is_counted
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import ChainProblem, SampleProblem


class Lengths(NamedTuple):
    """The shortest sequences that end in each ideal with each vector of used devices: shape (I, S) each.

    Parameters
    ----------
    value, origin, kind
        The length, the ideal before the last block, and the kind of the last block.
    """

    value: Floats
    origin: NDArray[np.int32]
    kind: NDArray[np.int16]


@njit(cache=True, nogil=True)
def sweep(  # type: ignore[no-untyped-def]
    lattice: Lattice, costs: BlockCosts, following: Ints, remaining: Floats, cutoff: float, table: Lengths,
    first: int, budget: int,
):  # fmt: skip
    """Extend the sequences that end in ideals `first`, `first` + 1, ... by one block.

    Parameters
    ----------
    lattice, costs
        The ideals, and the costs of the blocks between them.
    following
        Shape (S, K): the state with one more device of a kind, -1 if there is none left; the state
        itself for kinds that need not be counted.
    remaining
        Shape (I,): a lower bound on the length of sequences outside an ideal.
    cutoff
        Only sequences of less than this are looked for.
    table
        The sequences found, which are written.
    first, budget
        The ideal to start with, and the number of steps after which to return.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    pays, communication, memory = costs.pays, costs.communication, costs.memory
    value, origin, kind = table.value, table.origin, table.kind
    ideals, kinds, states = len(lattice.parent), len(costs.memory), len(following)
    walk = new_walk(costs)
    start_of, node, to = lattice.start, lattice.node, lattice.to
    cursor, end, size, compute, transfer = walk.cursor, walk.end, walk.size, walk.compute, walk.transfer
    least, low = np.empty(states), np.empty(kinds)
    path = np.zeros((len(costs.size) + 2, kinds, 2))
    done = np.zeros((kinds, len(costs.backward)))
    steps = 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        if not list_states(value[start], cutoff - remaining[start], following, least, low):
            continue
        depth = 0
        cursor[0], end[0] = start_of[start], start_of[start + 1]
        while True:
            depth = next_block(lattice, costs, walk, depth)
            if depth < 0:
                break
            steps += 1
            e, deeper = cursor[depth] - 1, depth + 1
            v, ideal = node[e], to[e]
            run_nodes(costs, walk, v, done, path, depth)
            into0, out0 = transfer[deeper, 0], transfer[deeper, 1]
            into1, out1 = transfer[deeper, 2], transfer[deeper, 3]
            possible = False
            for k in range(kinds):
                ahead, behind = compute[deeper, k, 0], compute[deeper, k, 1]
                if low[k] == np.inf or size[deeper] > memory[k] or ahead == np.inf:
                    continue
                if pays[k]:
                    length = joint_load(ahead, into0, out0, communication)
                    length += joint_load(behind, into1, out1, communication)
                    # a larger block receives no less in the forward pass, and processes no less
                    bound = joint_load(ahead, into0, 0.0, communication) + behind + remaining[ideal]
                else:
                    length = bound = path[deeper, k, 0] + path[deeper, k, 1]
                if low[k] + bound >= cutoff:
                    continue
                possible = True
                for s in range(states):
                    t = following[s, k]
                    total = least[s] + length
                    if t >= 0 and total < value[ideal, t] and total + remaining[ideal] < cutoff:
                        value[ideal, t] = total
                        origin[ideal, t] = start
                        kind[ideal, t] = k
            if possible:
                depth = deepen(lattice, walk, depth)
            else:
                leave(costs, walk, v)
    return ideals, steps


@njit(cache=True, inline="always")
def list_states(value, cutoff, following, least, low):  # type: ignore[no-untyped-def]
    """Write the values of useful states, infinity for others, to `least`, and the least by kind to `low`.

    A state is useless if another one reaches the ideal with fewer devices in no more time. Returned is
    whether some state is useful.
    """
    states, kinds = following.shape
    found = False
    low[:] = np.inf
    least[:] = np.inf
    for s in range(states):  # at first the least of all states with fewer devices
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


@njit(cache=True, inline="always")
def run_nodes(costs: BlockCosts, walk: BlockWalk, v: int, done: Floats, path: Floats, depth: int) -> None:
    """Write the longest paths of the block with `v` to `depth` + 1, for kinds that do not pay."""
    node_start, node, before_start, before = costs.node_start, costs.node, costs.before_start, costs.before
    pays, time, backward, present = costs.pays, costs.time, costs.backward, walk.present
    for k in range(len(pays)):
        if pays[k]:
            continue
        ahead, behind = path[depth, k, 0], path[depth, k, 1]
        for i in range(node_start[v], node_start[v + 1]):
            u = node[i]
            ready = 0.0
            for j in range(before_start[u], before_start[u + 1]):
                if present[before[j]]:
                    ready = max(ready, done[k, before[j]])
            done[k, u] = ready + time[k, u]
            if backward[u]:
                behind = max(behind, done[k, u])
            else:
                ahead = max(ahead, done[k, u])
        path[depth + 1, k, 0], path[depth + 1, k, 1] = ahead, behind


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


BYTES_PER_STATE = 14
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
        self.table = Lengths(np.full(shape, np.inf), np.empty(shape, np.int32), np.empty(shape, np.int16))
        self.table.value[0, 0] = 0.0
        self.steps, self.complete = 0, False

    def fill(self, settings: Settings, step_limit: int) -> None:
        """Walk up the lattice; then `complete` says whether the walk ended without reaching a limit."""
        remaining, ideal = remaining_weights(self.lattice, self.model.weight), 0
        while ideal < self.lattice.size - 1:
            ideal, steps = sweep(
                self.lattice, self.model.costs, self.states.following, remaining, self.cutoff, self.table,
                ideal, SLICE,
            )  # fmt: skip
            self.steps += steps
            if ideal < self.lattice.size - 1 and (settings.expired or self.steps > step_limit):
                return
        self.complete = True

    def totals(self) -> list[tuple[float, int]]:
        """Return total length and number of every vector of used devices with a sequence, best first."""
        return sorted((float(total), s) for s, total in enumerate(self.table.value[-1]) if np.isfinite(total))

    def blocks(self, state: int) -> list[Part]:
        """Return the blocks of the best sequence for a vector of used devices."""
        blocks, ideal = [], self.lattice.size - 1
        while ideal:
            kind, before = int(self.table.kind[ideal, state]), int(self.table.origin[ideal, state])
            blocks.append(Part(kind, self.lattice.difference(ideal, before)))
            ideal, state = before, state - int(self.states.stride[kind])
        return blocks[::-1]
