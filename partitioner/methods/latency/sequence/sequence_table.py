"""Tables of the least total length of sequences of blocks.

Additive lower bounds on sequences of blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp.lattice import Lattice, first_later_cover, remaining_weights
from partitioner.methods.latency.sequence.chains import BlockCosts, costs_of
from partitioner.methods.latency.sequence.packing import is_counted
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import ChainProblem, SampleProblem


@njit(cache=True, nogil=True)
def sweep(lattice, costs, following, remaining, cutoff, value, origin, kind, first, budget):  # type: ignore[no-untyped-def]
    """Extend the sequences that end in ideals `first`, `first` + 1, ... by one block.

    Parameters
    ----------
    lattice, costs
        See :class:`Lattice` and :class:`BlockCosts`.
    following
        Shape (S, K): the state with one more device of a kind, -1 if there is none left; the state
        itself for kinds that need not be counted.
    remaining
        Shape (I,): a lower bound on the length of sequences outside an ideal.
    cutoff
        Only sequences of less than this are looked for.
    value, origin, kind
        Shape (I, S): the length, the ideal before the last block, and the kind of the last block are written
        to these.
    first, budget
        The ideal to start with, and the number of steps after which to return.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    work, sizes, memory, pays = costs.work, costs.size, costs.memory, costs.pays
    communication = costs.communication
    net_start, net_of, net_pass, makes = costs.net_start, costs.net, costs.backward_pin, costs.makes
    pins, cost = costs.pins, costs.cost
    node_start, node_of = costs.node_start, costs.node
    before_start, before = costs.before_start, costs.before
    time, backward = costs.time, costs.backward
    ideals, nodes, kinds = len(lattice.parent), len(sizes), len(memory)
    states = len(following)
    least = np.empty(states, np.float64)
    low = np.empty(kinds, np.float64)
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    size = np.zeros(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, kinds, 2), np.float64)
    transfer = np.zeros((nodes + 2, 4), np.float64)
    path = np.zeros((nodes + 2, kinds, 2), np.float64)
    done = np.zeros((kinds, len(backward)), np.float64)
    present = np.zeros(len(backward), np.bool_)
    inside = np.zeros((len(pins), 2), np.int64)
    holds = np.zeros(len(pins), np.int64)  # 1 + the pass of the source, if the block holds the source
    steps = 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        if not list_states(value[start], cutoff - remaining[start], following, least, low):
            continue
        # Walk the blocks that start here, depth first: a block grows by one supernode a step.
        depth = 0
        cursor[0], end[0] = start_of[start], start_of[start + 1]
        while depth >= 0:
            e = cursor[depth]
            if e == end[depth]:
                depth -= 1
                if depth >= 0:
                    v = node[cursor[depth] - 1]
                    leave(v, net_start, net_of, net_pass, makes, inside, holds, node_start, node_of, present)
                continue
            cursor[depth] = e + 1
            v, ideal = node[e], to[e]
            steps += 1
            into0, out0, into1, out1 = enter(
                v, net_start, net_of, net_pass, makes, pins, cost, inside, holds,
                transfer[depth, 0], transfer[depth, 1], transfer[depth, 2], transfer[depth, 3],
            )  # fmt: skip
            deeper = depth + 1
            transfer[deeper, 0], transfer[deeper, 1] = into0, out0
            transfer[deeper, 2], transfer[deeper, 3] = into1, out1
            size[deeper] = size[depth] + sizes[v]
            run_nodes(v, kinds, pays, node_start, node_of, before_start, before, time, backward,
                      present, done, path, depth)  # fmt: skip
            possible = False  # whether a larger block may still be of use
            for k in range(kinds):
                compute[deeper, k, 0] = compute[depth, k, 0] + work[k, 0, v]
                compute[deeper, k, 1] = compute[depth, k, 1] + work[k, 1, v]
                if low[k] == np.inf or size[deeper] > memory[k] or compute[deeper, k, 0] == np.inf:
                    continue
                if pays[k]:
                    ahead, behind = compute[deeper, k, 0], compute[deeper, k, 1]
                    length = joint_load(ahead, into0, out0, communication)
                    length += joint_load(behind, into1, out1, communication)
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
            if not possible:
                leave(v, net_start, net_of, net_pass, makes, inside, holds, node_start, node_of, present)
                continue
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
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
def enter(v, net_start, net_of, net_pass, makes, pins, cost, inside, holds, into0, out0, into1, out1):  # type: ignore[no-untyped-def]
    """Add supernode `v` to the block; return its transfers in and out, forward and backward."""
    for i in range(net_start[v], net_start[v + 1]):
        net, p = net_of[i], net_pass[i]
        price = cost[net]
        inside[net, p] += 1
        if makes[i]:
            holds[net] = 1 + p
            into = price if inside[net, p] > 1 else 0.0
            out = price if inside[net, p] < pins[net] else 0.0
            if p == 0:
                into0 -= into
                out0 += out
            else:
                into1 -= into
                out1 += out
        elif holds[net] == 1 + p:
            if inside[net, p] == pins[net]:
                if p == 0:
                    out0 -= price
                else:
                    out1 -= price
        elif inside[net, p] == 1:
            if p == 0:
                into0 += price
            else:
                into1 += price
    return into0, out0, into1, out1


@njit(cache=True, inline="always")
def leave(v, net_start, net_of, net_pass, makes, inside, holds, node_start, node_of, present):  # type: ignore[no-untyped-def]
    """Remove supernode `v` from the block."""
    for i in range(net_start[v], net_start[v + 1]):
        inside[net_of[i], net_pass[i]] -= 1
        if makes[i]:
            holds[net_of[i]] = 0
    for i in range(node_start[v], node_start[v + 1]):
        present[node_of[i]] = False


@njit(cache=True, inline="always")
def run_nodes(  # type: ignore[no-untyped-def]
    v, kinds, pays, node_start, node_of, before_start, before, time, backward, present, done, path, depth
):
    """Write the longest paths of the block with `v` to `depth` + 1, for kinds that do not pay."""
    for i in range(node_start[v], node_start[v + 1]):
        present[node_of[i]] = True
    for k in range(kinds):
        if pays[k]:
            continue
        ahead, behind = path[depth, k, 0], path[depth, k, 1]
        for i in range(node_start[v], node_start[v + 1]):
            u = node_of[i]
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
        self.value, self.origin = np.full(shape, np.inf), np.empty(shape, np.int32)
        self.kind = np.empty(shape, np.int16)
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
