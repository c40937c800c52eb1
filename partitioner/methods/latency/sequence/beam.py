"""The beam search over the lattice of ideals for plans with true start times.

A split in which every device holds one subgraph is a sequence of ideals: its subgraphs and CPU nodes in the
order in which they start. The start of each depends only on what it reads, so plans are built block by
block. Of the plans that hold the same supernodes with the same numbers of devices only the best few are
kept; if all were kept, the search would be exact for inference.

The walk over blocks is that of `_blocks_core.py`. Every vector of used devices at an ideal keeps several
labels, which are plans with the time at which each node is done. Times of the backward pass are counted from
the end, so that both passes grow in the same direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp.lattice import Lattice
from partitioner.methods.latency.sequence._blocks_core import BlockWalk, deepen, leave, new_walk, next_block
from partitioner.methods.latency.sequence.chains import BlockCosts
from partitioner.methods.latency.sequence.sequence_table import SequenceModel, SequenceStates
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.precedence import distinct

SAME = 1e-12


class Beam(NamedTuple):
    """The arguments of the search in addition to costs.

    Parameters
    ----------
    following
        See :class:`SequenceStates`.
    wait_start, waits
        Rows over supernodes: the nodes that each waits for.
    later_start, later
        Rows over nodes: the nodes that wait for each.
    tail, after
        Shape (N,): the longest path in best times from each node on, with and without the node.
    length_weight
        Weight of the total length of a plan's blocks in its rating, in addition to its last finish.
    """

    following: Ints
    wait_start: Ints
    waits: Ints
    later_start: Ints
    later: Ints
    tail: Floats
    after: Floats
    length_weight: float


class Labels(NamedTuple):
    """The plans kept: up to W for each ideal and vector of used devices.

    Parameters
    ----------
    key
        Shape (I, S, W): the ratings, ascending.
    times
        Shape (I, S, W, 4): when the last block is done, forward and backward, and lower bounds on the end of
        both passes.
    total
        Shape (I, S, W): the total length of the blocks.
    origin, label, kind
        Shape (I, S, W): the ideal and the plan before the last block, and the kind of the last block.
    done
        Shape (I, S * W, N): when each node is done.
    """

    key: Floats
    times: Floats
    total: Floats
    origin: NDArray[np.int32]
    label: NDArray[np.int32]
    kind: NDArray[np.int16]
    done: Floats


class Chosen(NamedTuple):
    """The plans at one ideal that are extended together, at most C of them, and the block that extends them.

    Parameters
    ----------
    label
        Shape (C,): the number of each plan among those of its ideal.
    have
        Shape (C, N): when each node is done.
    ready
        Shape (n + 2, C, 2): by the depth of the block, when all is done that either pass of it waits for.
    ahead
        Shape (n + 2, 2): by the depth of the block and by pass, the node with the longest path from it on
        among those that wait for the block; -1 if there is none.
    own
        Shape (N,): when each node of a block is done that does not pay for transfers.
    earlier
        Shape (n,): scratch space, False everywhere.
    """

    label: Ints
    have: Floats
    ready: Floats
    ahead: Ints
    own: Floats
    earlier: NDArray[np.bool_]


@njit(cache=True, nogil=True)
def advance(
    lattice: Lattice, costs: BlockCosts, beam: Beam, labels: Labels, cutoff: float, first: int, budget: int
) -> tuple[int, int]:
    """Extend the plans that end in ideals `first`, `first` + 1, ... by one block, or one supernode on a CPU.

    Parameters
    ----------
    lattice, costs, beam, labels
        The ideals, the costs of blocks, and the plans, which are written.
    cutoff
        Only plans that end before this are looked for.
    first, budget
        The ideal to start with, and the number of steps after which to return.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    ideals, depths, nodes = len(lattice.parent), len(costs.size) + 2, len(costs.backward)
    most = labels.key.shape[1] * labels.key.shape[2]
    walk = new_walk(costs)
    start_of, node, cursor, end = lattice.start, lattice.node, walk.cursor, walk.end
    chosen = Chosen(
        np.empty(most, np.int64),
        np.empty((most, nodes)),
        np.zeros((depths, most, 2)),
        np.full((depths, 2), -1, np.int64),
        np.zeros(nodes),
        np.zeros(len(costs.size), np.bool_),
    )
    steps = 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        count = choose(lattice, costs, labels, chosen, start, cutoff)
        if count == 0:
            continue
        depth = 0
        cursor[0], end[0] = start_of[start], start_of[start + 1]
        while True:
            depth = next_block(lattice, costs, walk, depth)
            if depth < 0:
                break
            steps += 1
            v = node[cursor[depth] - 1]
            await_inputs(costs, beam, walk, chosen, count, v, depth)
            look_ahead(lattice, costs, beam, walk, chosen.ahead, depth)
            if extend(lattice, costs, beam, walk, labels, chosen, (start, count, depth), cutoff):
                depth = deepen(lattice, walk, depth)
            else:
                leave(costs, walk, v)
    return ideals, steps


@njit(cache=True, inline="always")
def choose(
    lattice: Lattice, costs: BlockCosts, labels: Labels, chosen: Chosen, ideal: int, cutoff: float
) -> int:
    """List the plans of an ideal that can still end before the cutoff; return how many these are.

    When each of their nodes is done is written to `done` and `have`: a plan has its own times for the nodes
    of its last block, and those of the plan before it for the others.
    """
    key, times, done, origin = labels.key, labels.times, labels.done, labels.origin
    parent, added, earlier = lattice.parent, lattice.added, chosen.earlier
    node_start, node, before_start, before = costs.node_start, costs.node, costs.before_start, costs.before
    pays, time, backward = costs.pays, costs.time, costs.backward
    states, width, count = key.shape[1], key.shape[2], 0
    for i in range(states * width):
        s, w = i // width, i % width
        if not (key[ideal, s, w] < np.inf and times[ideal, s, w, 2] + times[ideal, s, w, 3] < cutoff):
            continue
        base, k = origin[ideal, s, w], labels.kind[ideal, s, w]
        if base >= 0:
            overwrite(done[ideal, i], done[base, labels.label[ideal, s, w]])
            place = base
            while place > 0:
                earlier[added[place]] = True
                place = parent[place]
            place = ideal
            while place > 0:
                v = added[place]
                if not earlier[v]:
                    for j in range(node_start[v], node_start[v + 1]):
                        u = node[j]
                        if pays[k]:
                            done[ideal, i, u] = times[ideal, s, w, backward[u]]
                        else:
                            ready = 0.0
                            for e in range(before_start[u], before_start[u + 1]):
                                ready = max(ready, done[ideal, i, before[e]])
                            done[ideal, i, u] = ready + time[k, u]
                place = parent[place]
            place = base
            while place > 0:
                earlier[added[place]] = False
                place = parent[place]
        chosen.label[count] = i
        overwrite(chosen.have[count], done[ideal, i])
        count += 1
    return count


@njit(cache=True, inline="always")
def await_inputs(
    costs: BlockCosts, beam: Beam, walk: BlockWalk, chosen: Chosen, count: int, v: int, depth: int
) -> None:
    """Write when all is done that a block with supernode `v` waits for, for every chosen plan."""
    ready, have, deeper = chosen.ready, chosen.have, depth + 1
    wait_start, waits, present, backward = beam.wait_start, beam.waits, walk.present, costs.backward
    for i in range(count):
        ready[deeper, i, 0], ready[deeper, i, 1] = ready[depth, i, 0], ready[depth, i, 1]
    for j in range(wait_start[v], wait_start[v + 1]):
        u = waits[j]
        if not present[u]:
            p = backward[u]
            for i in range(count):
                ready[deeper, i, p] = max(ready[deeper, i, p], have[i, u])


@njit(cache=True, inline="always")
def look_ahead(
    lattice: Lattice, costs: BlockCosts, beam: Beam, walk: BlockWalk, ahead: Ints, depth: int
) -> None:
    """Find the nodes with the longest path from them on among those that wait for the block, by pass.

    They are those of the smaller block, or wait for its last supernode, unless one of them is in the block
    now; then all supernodes of the block are gone through.
    """
    deeper, first = depth + 1, depth
    tail, present, later_start, later = beam.tail, walk.present, beam.later_start, beam.later
    added, cursor = lattice.node, walk.cursor
    node_start, node, backward = costs.node_start, costs.node, costs.backward
    for p in range(2):
        if ahead[depth, p] >= 0 and present[ahead[depth, p]]:
            first = 0
    ahead[deeper, 0], ahead[deeper, 1] = ahead[depth, 0], ahead[depth, 1]
    if first == 0:
        ahead[deeper, 0] = ahead[deeper, 1] = -1
    for d in range(first, deeper):
        v = added[cursor[d] - 1]
        for i in range(node_start[v], node_start[v + 1]):
            u = node[i]
            p = backward[u]
            for j in range(later_start[u], later_start[u + 1]):
                w = later[j]
                if not present[w] and (ahead[deeper, p] < 0 or tail[w] > tail[ahead[deeper, p]]):
                    ahead[deeper, p] = w


@njit(cache=True, inline="always")
def extend(  # type: ignore[no-untyped-def]
    lattice: Lattice, costs: BlockCosts, beam: Beam, walk: BlockWalk, labels: Labels, chosen: Chosen,
    place: tuple[int, int, int], cutoff: float,
):  # fmt: skip
    """Extend the chosen plans by the block; return whether a larger block may extend one of them.

    `place` is the ideal at which they end, how many they are, and the depth of the block without its last
    supernode.
    """
    start, count, depth = place
    deeper, pays, memory, communication = depth + 1, costs.pays, costs.memory, costs.communication
    key, times, totals, width = labels.key, labels.times, labels.total, labels.key.shape[2]
    following, tail, compute, transfer = beam.following, beam.tail, walk.compute, walk.transfer
    numbers, ready = chosen.label, chosen.ready
    e = walk.cursor[depth] - 1
    v, ideal, size = lattice.node[e], lattice.to[e], walk.size[deeper]
    into0, out0 = transfer[deeper, 0], transfer[deeper, 1]
    into1, out1 = transfer[deeper, 2], transfer[deeper, 3]
    next0, next1 = chosen.ahead[deeper, 0], chosen.ahead[deeper, 1]
    after0 = tail[next0] if next0 >= 0 else 0.0
    after1 = tail[next1] if next1 >= 0 else 0.0
    possible = False
    for k in range(len(memory)):
        busy0, busy1 = compute[deeper, k, 0], compute[deeper, k, 1]
        if size > memory[k] or busy0 == np.inf or (depth > 0 and not pays[k]):
            continue
        least = joint_load(busy0, into0, 0.0, communication)  # of the forward pass of any larger block
        ahead = joint_load(busy0, into0, out0, communication)
        behind = joint_load(busy1, into1, out1, communication) if pays[k] else busy1
        for i in range(count):
            s, w = numbers[i] // width, numbers[i] % width
            t = following[s, k]
            if t < 0:
                continue
            view0, view1 = times[start, s, w, 2], times[start, s, w, 3]
            if pays[k]:
                begin0, begin1 = ready[deeper, i, 0], ready[deeper, i, 1]
                if max(view0, begin0 + least) + max(view1, begin1 + busy1) >= cutoff:
                    continue
                possible = True
                finish0, finish1 = begin0 + ahead, begin1 + behind
                view0, view1 = max(view0, finish0 + after0), max(view1, finish1 + after1)
                spent = totals[start, s, w] + (ahead + behind)
            else:
                finish0, finish1, view0, view1 = run_alone(
                    costs, beam.after, walk.present, chosen, i, v, k, (view0, view1)
                )
                spent = totals[start, s, w] + (busy0 + busy1)
            rating = view0 + view1 + beam.length_weight * spent
            if view0 + view1 < cutoff and rating < key[ideal, t, width - 1]:
                free = make_room(labels, ideal, t, rating)
                if free >= 0:
                    key[ideal, t, free], totals[ideal, t, free] = rating, spent
                    times[ideal, t, free, 0], times[ideal, t, free, 1] = finish0, finish1
                    times[ideal, t, free, 2], times[ideal, t, free, 3] = view0, view1
                    labels.origin[ideal, t, free], labels.label[ideal, t, free] = start, numbers[i]
                    labels.kind[ideal, t, free] = k
    return possible


@njit(cache=True, inline="always")
def run_alone(
    costs: BlockCosts, after: Floats, present: NDArray[np.bool_], chosen: Chosen, mine: int, v: int, k: int,
    view: tuple[float, float],
) -> tuple[float, float, float, float]:  # fmt: skip
    """Time the nodes of one supernode on a kind that does not pay for transfers."""
    own, have, (view0, view1) = chosen.own, chosen.have, view
    node_start, node, before_start, before = costs.node_start, costs.node, costs.before_start, costs.before
    time, backward = costs.time, costs.backward
    finish0 = finish1 = 0.0
    for i in range(node_start[v], node_start[v + 1]):
        u = node[i]
        ready = 0.0
        for j in range(before_start[u], before_start[u + 1]):
            b = before[j]
            ready = max(ready, own[b] if present[b] else have[mine, b])
        own[u] = ready + time[k, u]
        if backward[u]:
            finish1 = max(finish1, own[u])
            view1 = max(view1, own[u] + after[u])
        else:
            finish0 = max(finish0, own[u])
            view0 = max(view0, own[u] + after[u])
    return finish0, finish1, view0, view1


@njit(cache=True, inline="always")
def make_room(labels: Labels, ideal: int, t: int, rating: float) -> int:
    """Move worse labels down and return the free place; -1 if there is a label with the same rating."""
    key, times, total = labels.key, labels.times, labels.total
    origin, label, kind = labels.origin, labels.label, labels.kind
    place = last = key.shape[2] - 1
    while place > 0 and key[ideal, t, place - 1] > rating * (1 + SAME):
        place -= 1
    if place > 0 and key[ideal, t, place - 1] >= rating * (1 - SAME):
        return -1
    for j in range(last, place, -1):
        key[ideal, t, j], total[ideal, t, j] = key[ideal, t, j - 1], total[ideal, t, j - 1]
        for i in range(4):
            times[ideal, t, j, i] = times[ideal, t, j - 1, i]
        origin[ideal, t, j], label[ideal, t, j] = origin[ideal, t, j - 1], label[ideal, t, j - 1]
        kind[ideal, t, j] = kind[ideal, t, j - 1]
    return int(place)


SLICE = 500_000


def label_bytes(model: SequenceModel) -> int:
    """Return the bytes that one label takes."""
    return 80 + 8 * len(model.member)


class BeamSearch:
    """A beam search over one lattice.

    Parameters
    ----------
    model, lattice, states
        The model, a lattice over its supernodes, and the vectors of used devices.
    width
        How many plans are kept for each ideal and vector of used devices.
    length_weight
        See :class:`Beam`.
    cutoff
        Only plans that end before this are looked for.
    """

    def __init__(
        self,
        model: SequenceModel,
        lattice: Lattice,
        states: SequenceStates,
        width: int,
        length_weight: float,
        cutoff: float,
    ) -> None:
        self.model, self.lattice, self.states, self.cutoff = model, lattice, states, cutoff
        waits, later = _waits(model), _later(model)
        tail, after = _paths(model, later)
        self.beam = Beam(states.following, *waits, *later, tail, after, length_weight)
        shape = lattice.size, len(states.following), width
        self.labels = Labels(
            key=np.full(shape, np.inf),
            times=np.zeros((*shape, 4)),
            total=np.zeros(shape),
            origin=np.full(shape, -1, np.int32),
            label=np.zeros(shape, np.int32),
            kind=np.zeros(shape, np.int16),
            done=np.zeros((shape[0], shape[1] * shape[2], len(model.member))),
        )
        self.labels.key[0, 0, 0] = 0.0
        self.steps = 0

    def run(self, settings: Settings, step_limit: int) -> None:
        """Walk up the lattice; no plan is found if a limit stops the walk."""
        ideal, last = 0, self.lattice.size - 1
        while ideal < last and not settings.expired and self.steps <= step_limit:
            ideal, steps = advance(
                self.lattice, self.model.costs, self.beam, self.labels, self.cutoff, ideal, SLICE
            )
            self.steps += steps

    def plans(self, most: int) -> list[list[Part]]:
        """Return the blocks of the best plans, at most `most`."""
        key = self.labels.key[-1]
        order = np.argsort(key, axis=None, kind="stable")[:most]
        return [self._blocks(int(i)) for i in order if np.isfinite(key.flat[i])]

    def _blocks(self, label: int) -> list[Part]:
        blocks, ideal, width = [], self.lattice.size - 1, self.labels.key.shape[2]
        while ideal:
            at = ideal, label // width, label % width
            before, label = int(self.labels.origin[at]), int(self.labels.label[at])
            blocks.append(Part(int(self.labels.kind[at]), self.lattice.difference(ideal, before)))
            ideal = before
        return blocks[::-1]


def _waits(model: SequenceModel) -> Rows:
    """Return rows over supernodes of the nodes that each waits for."""
    costs, member = model.costs, model.member
    later = np.repeat(np.arange(len(member)), np.diff(costs.before_start))
    pairs = np.stack((member[later], costs.before), axis=1)
    pairs = distinct(pairs[pairs[:, 0] != member[pairs[:, 1]]])
    return rows_of(pairs[:, 0], pairs[:, 1], model.chain.n)


def _later(model: SequenceModel) -> Rows:
    costs = model.costs
    later = np.repeat(np.arange(len(model.member)), np.diff(costs.before_start))
    return rows_of(costs.before, later, len(model.member))


def _paths(model: SequenceModel, later: Rows) -> tuple[Floats, Floats]:
    """Return the longest path from every node on, with and without the node, shape (N,) each."""
    costs = model.costs
    time = np.where(np.isfinite(costs.work[:, 0])[:, model.member], costs.time, np.inf).min(axis=0)
    after = np.zeros(len(time))
    for u in costs.node[::-1].tolist():
        row = later.row(u)
        after[u] = (time[row] + after[row]).max(initial=0.0)
    return time + after, after
