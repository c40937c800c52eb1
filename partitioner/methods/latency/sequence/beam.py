"""The beam search over the lattice of ideals for plans with true start times.

A split in which every device holds one subgraph is a sequence of ideals: its subgraphs and CPU nodes in the
order in which they start. The start of each depends only on what it reads, so plans are built block by
block. Of the plans that hold the same supernodes with the same numbers of devices only the best few are
kept; if all were kept, the search would be exact for inference.

The compiled walk for blocks that start as soon as their inputs are there.

It is like that of `sequence_kernel.py`, but every vector of used devices at an ideal keeps several labels,
which are plans with the time at which each node is done. Times of the backward pass are counted from the
end, so that both passes grow in the same direction.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp.lattice import Lattice, first_later_cover
from partitioner.methods.latency.sequence.sequence_table import SequenceModel, SequenceStates, enter, leave
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.precedence import distinct

SAME = 1e-12


@njit(cache=True, nogil=True)
def advance(lattice, costs, beam, labels, cutoff, first, budget):  # type: ignore[no-untyped-def]
    """Extend the plans that end in ideals `first`, `first` + 1, ... by one block, or one supernode on a CPU.

    Parameters
    ----------
    lattice, costs, beam, labels
        See :class:`Lattice`, :class:`BlockCosts`, :class:`Beam` and :class:`Labels`; the labels are written.
    cutoff
        Only plans that end before this are looked for.
    first, budget
        The ideal to start with, and the number of steps after which to return.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    start_of, node, to, rank = lattice.start, lattice.node, lattice.to, lattice.rank
    parent, added = lattice.parent, lattice.added
    work, sizes, memory, pays = costs.work, costs.size, costs.memory, costs.pays
    communication = costs.communication
    net_start, net_of, net_pass, makes = costs.net_start, costs.net, costs.backward_pin, costs.makes
    pins, cost = costs.pins, costs.cost
    node_start, node_of = costs.node_start, costs.node
    before_start, before = costs.before_start, costs.before
    time, backward = costs.time, costs.backward
    following, length_weight = beam.following, beam.length_weight
    wait_start, waits = beam.wait_start, beam.waits
    later_start, later, tail, after = beam.later_start, beam.later, beam.tail, beam.after
    key, total, times = labels.key, labels.total, labels.times
    origin, label, kind, done = labels.origin, labels.label, labels.kind, labels.done
    ideals, nodes, kinds = len(parent), len(sizes), len(memory)
    states, width = key.shape[1], key.shape[2]
    chosen = np.empty(states * width, np.int64)
    have = np.empty((states * width, len(backward)), np.float64)  # `done` of the chosen labels
    cursor = np.empty(nodes + 2, np.int64)
    end = np.empty(nodes + 2, np.int64)
    size = np.zeros(nodes + 2, np.float64)
    compute = np.zeros((nodes + 2, kinds, 2), np.float64)
    transfer = np.zeros((nodes + 2, 4), np.float64)
    ready = np.zeros((nodes + 2, states * width, 2), np.float64)
    next0 = np.full(
        nodes + 2, -1, np.int64
    )  # the node with the longest path of those that wait for the block
    next1 = np.full(nodes + 2, -1, np.int64)
    own = np.zeros(len(backward), np.float64)
    present = np.zeros(len(backward), np.bool_)
    earlier = np.zeros(nodes, np.bool_)
    inside = np.zeros((len(pins), 2), np.int64)
    holds = np.zeros(len(pins), np.int64)
    steps = 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        count = 0
        for i in range(states * width):
            s, w = i // width, i % width
            if key[start, s, w] < np.inf and times[start, s, w, 2] + times[start, s, w, 3] < cutoff:
                settle(start, s, w, parent, added, origin, label, kind, times, done, earlier,
                       pays, node_start, node_of, before_start, before, time, backward)  # fmt: skip
                chosen[count] = i
                overwrite(have[count], done[start, i])
                count += 1
        if count == 0:
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
            deeper = depth + 1
            into0, out0, into1, out1 = enter(
                v, net_start, net_of, net_pass, makes, pins, cost, inside, holds,
                transfer[depth, 0], transfer[depth, 1], transfer[depth, 2], transfer[depth, 3],
            )  # fmt: skip
            transfer[deeper, 0], transfer[deeper, 1] = into0, out0
            transfer[deeper, 2], transfer[deeper, 3] = into1, out1
            size[deeper] = size[depth] + sizes[v]
            for i in range(node_start[v], node_start[v + 1]):
                present[node_of[i]] = True
            for i in range(count):
                ready[deeper, i, 0], ready[deeper, i, 1] = ready[depth, i, 0], ready[depth, i, 1]
            for j in range(wait_start[v], wait_start[v + 1]):
                u = waits[j]
                if not present[u]:
                    for i in range(count):
                        ready[deeper, i, backward[u]] = max(ready[deeper, i, backward[u]], have[i, u])
            # The node that waits longest behind the block is looked for again if it is in the block now.
            first_of = depth if (next0[depth] < 0 or not present[next0[depth]]) and (
                next1[depth] < 0 or not present[next1[depth]]
            ) else 0  # fmt: skip
            next0[deeper], next1[deeper] = next0[depth], next1[depth]
            if first_of == 0:
                next0[deeper] = next1[deeper] = -1
            find_next(
                first_of, depth, cursor, node, node_start, node_of, later_start, later, tail, backward,
                present, next0, next1,
            )  # fmt: skip
            after0 = tail[next0[deeper]] if next0[deeper] >= 0 else 0.0
            after1 = tail[next1[deeper]] if next1[deeper] >= 0 else 0.0
            possible = False  # whether a larger block may still be of use
            for k in range(kinds):
                compute[deeper, k, 0] = compute[depth, k, 0] + work[k, 0, v]
                compute[deeper, k, 1] = compute[depth, k, 1] + work[k, 1, v]
                ahead, behind = compute[deeper, k, 0], compute[deeper, k, 1]
                if size[deeper] > memory[k] or ahead == np.inf or (depth > 0 and not pays[k]):
                    continue
                least = joint_load(ahead, into0, 0.0, communication)
                ahead = joint_load(ahead, into0, out0, communication)
                if pays[k]:
                    behind_least, behind = behind, joint_load(behind, into1, out1, communication)
                for i in range(count):
                    s, w = chosen[i] // width, chosen[i] % width
                    t = following[s, k]
                    if t < 0:
                        continue
                    view0, view1 = times[start, s, w, 2], times[start, s, w, 3]
                    spent = total[start, s, w]
                    if pays[k]:
                        begin0, begin1 = ready[deeper, i, 0], ready[deeper, i, 1]
                        if max(view0, begin0 + least) + max(view1, begin1 + behind_least) >= cutoff:
                            continue
                        possible = True
                        finish0, finish1 = begin0 + ahead, begin1 + behind
                        view0, view1 = max(view0, finish0 + after0), max(view1, finish1 + after1)
                        spent += ahead + behind
                    else:
                        finish0, finish1, view0, view1 = run_alone(
                            v, k, view0, view1, have, i, own, present, after,
                            node_start, node_of, before_start, before, time, backward,
                        )  # fmt: skip
                        spent += compute[deeper, k, 0] + compute[deeper, k, 1]
                    rating = view0 + view1 + length_weight * spent
                    if view0 + view1 < cutoff and rating < key[ideal, t, width - 1]:
                        place = make_room(ideal, t, rating, key, times, total, origin, label, kind)
                        if place >= 0:
                            key[ideal, t, place], total[ideal, t, place] = rating, spent
                            times[ideal, t, place, 0], times[ideal, t, place, 1] = finish0, finish1
                            times[ideal, t, place, 2], times[ideal, t, place, 3] = view0, view1
                            origin[ideal, t, place], label[ideal, t, place] = start, chosen[i]
                            kind[ideal, t, place] = k
            if not possible:
                leave(v, net_start, net_of, net_pass, makes, inside, holds, node_start, node_of, present)
                continue
            depth += 1
            end[depth] = start_of[ideal + 1]
            cursor[depth] = first_later_cover(start_of, node, rank, ideal, v)
    return ideals, steps


@njit(cache=True, inline="always")
def settle(  # type: ignore[no-untyped-def]
    ideal, s, w, parent, added, origin, label, kind, times, done, earlier,
    pays, node_start, node_of, before_start, before, time, backward,
):  # fmt: skip
    """Write when each node of a label's plan is done to `done`."""
    mine, base, k = s * times.shape[2] + w, origin[ideal, s, w], kind[ideal, s, w]
    if base < 0:
        return
    overwrite(done[ideal, mine], done[base, label[ideal, s, w]])
    mark(base, parent, added, earlier, True)
    place = ideal
    while place > 0:
        v = added[place]
        if not earlier[v]:
            for i in range(node_start[v], node_start[v + 1]):
                u = node_of[i]
                if pays[k]:
                    done[ideal, mine, u] = times[ideal, s, w, backward[u]]
                else:
                    ready = 0.0
                    for j in range(before_start[u], before_start[u + 1]):
                        ready = max(ready, done[ideal, mine, before[j]])
                    done[ideal, mine, u] = ready + time[k, u]
        place = parent[place]
    mark(base, parent, added, earlier, False)


@njit(cache=True, inline="always")
def mark(ideal, parent, added, earlier, value):  # type: ignore[no-untyped-def]
    """Set `earlier` to a value for every supernode of an ideal."""
    while ideal > 0:
        earlier[added[ideal]] = value
        ideal = parent[ideal]


@njit(cache=True, inline="always")
def find_next(  # type: ignore[no-untyped-def]
    first, depth, cursor, node, node_start, node_of, later_start, later, tail, backward, present, next0, next1
):
    """Find the nodes with the longest path ahead among those that wait for nodes added from `first` on."""
    for d in range(first, depth + 1):
        v = node[cursor[d] - 1]
        for i in range(node_start[v], node_start[v + 1]):
            u = node_of[i]
            best = next1 if backward[u] else next0
            for j in range(later_start[u], later_start[u + 1]):
                w = later[j]
                if not present[w] and (best[depth + 1] < 0 or tail[w] > tail[best[depth + 1]]):
                    best[depth + 1] = w


@njit(cache=True, inline="always")
def run_alone(  # type: ignore[no-untyped-def]
    v, k, view0, view1, have, mine, own, present, after,
    node_start, node_of, before_start, before, time, backward,
):  # fmt: skip
    """Time the nodes of one supernode on a kind that does not pay for transfers."""
    finish0 = finish1 = 0.0
    for i in range(node_start[v], node_start[v + 1]):
        u = node_of[i]
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
def make_room(ideal, t, rating, key, times, total, origin, label, kind):  # type: ignore[no-untyped-def]
    """Move worse labels down and return the free place; -1 if there is a label with the same rating."""
    place = key.shape[2] - 1
    while place > 0 and key[ideal, t, place - 1] > rating * (1 + SAME):
        place -= 1
    if place > 0 and key[ideal, t, place - 1] >= rating * (1 - SAME):
        return -1
    for j in range(key.shape[2] - 1, place, -1):
        key[ideal, t, j], total[ideal, t, j] = key[ideal, t, j - 1], total[ideal, t, j - 1]
        for i in range(4):
            times[ideal, t, j, i] = times[ideal, t, j - 1, i]
        origin[ideal, t, j], label[ideal, t, j] = origin[ideal, t, j - 1], label[ideal, t, j - 1]
        kind[ideal, t, j] = kind[ideal, t, j - 1]
    return place


SLICE = 500_000


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
