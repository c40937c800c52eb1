"""The beam search over the lattice of ideals for plans with true start times.

A split in which every device holds one subgraph is a sequence of ideals: its subgraphs and CPU nodes in the
order in which they start. The start of each depends only on what it reads, so plans are built block by
block. Of the plans that hold the same supernodes with the same numbers of devices only the best few are
kept; if all were kept, the search would be exact for inference.

Every vector of used devices at an ideal keeps several labels, which are plans with the time at which each
node is done. Times of the backward pass are counted from the end, so that both passes grow in the same
direction.

Without it 4 of the 8 published plans of method ``latency_dp`` are worse, by 1.4 to 5.3 %.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit, overwrite
from partitioner.methods.communication_kernel import joint_load
from partitioner.methods.dp._walk_core import new_path, walk_of
from partitioner.methods.dp.lattice import Lattice, mark
from partitioner.methods.latency.sequence._blocks_core import (
    BlockSums,
    add,
    empty_block,
    leave,
    lost,
    reach,
    remove,
)
from partitioner.methods.latency.sequence.chains import BlockCosts
from partitioner.methods.latency.sequence.effort import EFFORT
from partitioner.methods.latency.sequence.sequence_table import SequenceModel, SequenceStates
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.precedence import distinct

SAME = 1e-12  # relative difference of ratings below which two plans count as one
FINISH, VIEW = 0, 2  # columns of `times`, of both passes each
Flags = NDArray[np.bool_]


class Waits(NamedTuple):
    """The nodes that wait for one another, and how much follows each.

    Parameters
    ----------
    start, node
        Rows over supernodes: the nodes that each waits for.
    later_start, later
        Rows over nodes: the nodes that wait for each.
    tail, after
        Shape (N,): the longest path in best times from each node on, with and without the node.
    """

    start: Ints
    node: Ints
    later_start: Ints
    later: Ints
    tail: Floats
    after: Floats


class Labels(NamedTuple):
    """The plans kept: up to W for each ideal and vector of used devices.

    Parameters
    ----------
    key
        Shape (I, S, W): the ratings, ascending.
    times
        Shape (I, S, W, 4): the finish of the last block in both passes, and the least time in which each pass
        can end. Those of the backward pass are counted from the end.
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


class PlanTally(NamedTuple):
    """The current block, and the plans that it extends; their times of the backward pass run from the end.

    Parameters
    ----------
    costs, block, waits, labels
        The costs, the current block, what waits for what, and the plans, which are written.
    following, cutoff, length_weight
        See :class:`SumTally`; and the weight of the total length of a plan's blocks in its rating, in
        addition to its last finish.
    found, chosen, have
        Shapes (1,), (S * W,) and (S * W, N): how many plans lead to where the block begins, their numbers,
        and when their nodes are done.
    held, ready, next
        Shapes (n + 2,), (n + 2, S * W, 2) and (n + 2, 2): by depth the supernode that was added there, when
        what the block reads is there by plan and pass, and by pass the node with the longest path of those
        that wait for the block, -1 if there is none.
    own, earlier
        Shapes (N,) and (n,): when the nodes of a block without transfers are done; scratch space.
    """

    costs: BlockCosts
    block: BlockSums
    waits: Waits
    labels: Labels
    following: Ints
    cutoff: float
    length_weight: float
    found: Ints
    chosen: Ints
    have: Floats
    held: Ints
    ready: Floats
    next: Ints
    own: Floats
    earlier: Flags


def _enter_plan(tally, start, ideal, depth, v):  # type: ignore[no-untyped-def]
    """Add supernode `v` and extend the plans by the block; return whether a larger one may be of use."""
    costs, block, labels, deeper = tally.costs, tally.block, tally.labels, depth + 1
    add(costs, block, v, depth)
    tally.held[depth] = v
    _await(tally, v, depth)
    _find_next(tally, depth)
    compute, ready, key, following = block.compute, tally.ready, labels.key, tally.following
    communication, cutoff, width = costs.communication, tally.cutoff, labels.key.shape[2]
    into0, out0 = block.moved[deeper, 0], block.moved[deeper, 1]
    into1, out1 = block.moved[deeper, 2], block.moved[deeper, 3]
    next0, next1 = tally.next[deeper, 0], tally.next[deeper, 1]
    after0 = tally.waits.tail[next0] if next0 >= 0 else 0.0
    after1 = tally.waits.tail[next1] if next1 >= 0 else 0.0
    possible = False
    for k in range(len(costs.memory)):
        pays = costs.pays[k]
        compute[deeper, k, 0] = compute[depth, k, 0] + costs.work[k, 0, v]
        compute[deeper, k, 1] = compute[depth, k, 1] + costs.work[k, 1, v]
        ahead, behind = compute[deeper, k, 0], compute[deeper, k, 1]
        if block.size[deeper] > costs.memory[k] or ahead == np.inf or (depth > 0 and not pays):
            continue
        least = joint_load(ahead, into0, 0.0, communication)
        ahead = joint_load(ahead, into0, out0, communication)
        if pays:
            behind_least, behind = behind, joint_load(behind, into1, out1, communication)
        for i in range(tally.found[0]):
            s, w = tally.chosen[i] // width, tally.chosen[i] % width
            t = following[s, k]
            if t < 0:
                continue
            view0, view1 = labels.times[start, s, w, VIEW], labels.times[start, s, w, VIEW + 1]
            spent = labels.total[start, s, w]
            if pays:
                begin0, begin1 = ready[deeper, i, 0], ready[deeper, i, 1]
                if max(view0, begin0 + least) + max(view1, begin1 + behind_least) >= cutoff:
                    continue
                possible = True
                finish0, finish1 = begin0 + ahead, begin1 + behind
                view0, view1 = max(view0, finish0 + after0), max(view1, finish1 + after1)
                spent += ahead + behind
            else:
                finish0, finish1, view0, view1 = _run_alone(tally, v, k, i, view0, view1)
                spent += compute[deeper, k, 0] + compute[deeper, k, 1]
            rating = view0 + view1 + tally.length_weight * spent
            if view0 + view1 < cutoff and rating < key[ideal, t, width - 1]:
                place = _make_room(labels, ideal, t, rating)
                if place >= 0:
                    key[ideal, t, place], labels.total[ideal, t, place] = rating, spent
                    labels.times[ideal, t, place, FINISH] = finish0
                    labels.times[ideal, t, place, FINISH + 1] = finish1
                    labels.times[ideal, t, place, VIEW] = view0
                    labels.times[ideal, t, place, VIEW + 1] = view1
                    labels.origin[ideal, t, place] = start
                    labels.label[ideal, t, place] = tally.chosen[i]
                    labels.kind[ideal, t, place] = k
    if not possible:
        remove(costs, block, v)
    return possible


@njit(cache=True, inline="always")
def _await(tally, v, depth):  # type: ignore[no-untyped-def]
    """Write when all that the block with `v` reads is there, by plan and pass, to `depth` + 1."""
    ready, have, waits, backward = tally.ready, tally.have, tally.waits, tally.costs.backward
    for i in range(tally.found[0]):
        ready[depth + 1, i, 0], ready[depth + 1, i, 1] = ready[depth, i, 0], ready[depth, i, 1]
    for j in range(waits.start[v], waits.start[v + 1]):
        u = waits.node[j]
        if not tally.block.present[u]:
            for i in range(tally.found[0]):
                p = backward[u]
                ready[depth + 1, i, p] = max(ready[depth + 1, i, p], have[i, u])


@njit(cache=True, inline="always")
def _find_next(tally, depth):  # type: ignore[no-untyped-def]
    """Write the nodes with the longest path of those that wait for the block to `depth` + 1.

    They are those of the block before, unless the block holds one of these now.
    """
    costs, waits, found, present = tally.costs, tally.waits, tally.next, tally.block.present
    next0, next1, first = found[depth, 0], found[depth, 1], depth
    if (next0 >= 0 and present[next0]) or (next1 >= 0 and present[next1]):
        first = 0
    if first == 0:
        next0 = next1 = -1
    found[depth + 1, 0], found[depth + 1, 1] = next0, next1
    for d in range(first, depth + 1):
        v = tally.held[d]
        for i in range(costs.node_start[v], costs.node_start[v + 1]):
            u = costs.node[i]
            p = costs.backward[u]
            for j in range(waits.later_start[u], waits.later_start[u + 1]):
                w, best = waits.later[j], found[depth + 1, p]
                if not present[w] and (best < 0 or waits.tail[w] > waits.tail[best]):
                    found[depth + 1, p] = w


@njit(cache=True, inline="always")
def _run_alone(tally, v, k, mine, view0, view1):  # type: ignore[no-untyped-def]
    """Return the ends of supernode `v` on a kind that does not pay, and of what follows, by pass."""
    costs, own = tally.costs, tally.own
    finish0 = finish1 = 0.0
    for i in range(costs.node_start[v], costs.node_start[v + 1]):
        u = costs.node[i]
        ready = 0.0
        for j in range(costs.before_start[u], costs.before_start[u + 1]):
            b = costs.before[j]
            ready = max(ready, own[b] if tally.block.present[b] else tally.have[mine, b])
        own[u] = ready + costs.time[k, u]
        if costs.backward[u]:
            finish1 = max(finish1, own[u])
            view1 = max(view1, own[u] + tally.waits.after[u])
        else:
            finish0 = max(finish0, own[u])
            view0 = max(view0, own[u] + tally.waits.after[u])
    return finish0, finish1, view0, view1


@njit(cache=True, inline="always")
def _make_room(labels, ideal, t, rating):  # type: ignore[no-untyped-def]
    """Move worse labels down and return the free place; -1 if there is a label with the same rating."""
    key, times = labels.key, labels.times
    place = key.shape[2] - 1
    while place > 0 and key[ideal, t, place - 1] > rating * (1 + SAME):
        place -= 1
    if place > 0 and key[ideal, t, place - 1] >= rating * (1 - SAME):
        return -1
    for j in range(key.shape[2] - 1, place, -1):
        key[ideal, t, j], labels.total[ideal, t, j] = key[ideal, t, j - 1], labels.total[ideal, t, j - 1]
        for i in range(4):
            times[ideal, t, j, i] = times[ideal, t, j - 1, i]
        labels.origin[ideal, t, j] = labels.origin[ideal, t, j - 1]
        labels.label[ideal, t, j] = labels.label[ideal, t, j - 1]
        labels.kind[ideal, t, j] = labels.kind[ideal, t, j - 1]
    return place


_walk_plans = walk_of(_enter_plan, leave, reach, lost)


@njit(cache=True, nogil=True, _nrt=False)
def advance(lattice, path, tally, first, budget):  # type: ignore[no-untyped-def]
    """Extend the plans that end in ideals `first`, `first` + 1, ... by one block, or one supernode on a CPU.

    Parameters
    ----------
    lattice, path, tally
        See :class:`Lattice`, :class:`WalkPath` and :class:`PlanTally`, whose plans are written.
    first, budget
        The ideal to start with, and the number of steps after which to return.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    labels, ideals, steps = tally.labels, len(lattice.parent), 0
    states, width = labels.key.shape[1], labels.key.shape[2]
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        count = 0
        for i in range(states * width):
            s, w = i // width, i % width
            least = labels.times[start, s, w, VIEW] + labels.times[start, s, w, VIEW + 1]
            if labels.key[start, s, w] < np.inf and least < tally.cutoff:
                _settle(lattice, tally, start, s, w)
                tally.chosen[count] = i
                overwrite(tally.have[count], labels.done[start, i])
                count += 1
        tally.found[0] = count
        if count > 0:
            steps += _walk_plans(lattice, path, start, np.inf, tally)
    return ideals, steps


@njit(cache=True, inline="always")
def _settle(lattice, tally, ideal, s, w):  # type: ignore[no-untyped-def]
    """Write when each node of a label's plan is done to `done`."""
    costs, labels, earlier, done = tally.costs, tally.labels, tally.earlier, tally.labels.done
    mine = s * labels.times.shape[2] + w
    base, k = labels.origin[ideal, s, w], labels.kind[ideal, s, w]
    if base < 0:
        return
    overwrite(done[ideal, mine], done[base, labels.label[ideal, s, w]])
    mark(base, True, lattice.parent, lattice.added, earlier)
    place = ideal
    while place > 0:
        v = lattice.added[place]
        if not earlier[v]:
            for i in range(costs.node_start[v], costs.node_start[v + 1]):
                u = costs.node[i]
                if costs.pays[k]:
                    done[ideal, mine, u] = labels.times[ideal, s, w, FINISH + costs.backward[u]]
                else:
                    ready = 0.0
                    for j in range(costs.before_start[u], costs.before_start[u + 1]):
                        ready = max(ready, done[ideal, mine, costs.before[j]])
                    done[ideal, mine, u] = ready + costs.time[k, u]
        place = lattice.parent[place]
    mark(base, False, lattice.parent, lattice.added, earlier)


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
        Weight of the total length of a plan's blocks in its rating, in addition to its last finish.
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
        self.lattice, costs, nodes = lattice, model.costs, len(model.member)
        shape, depths = (lattice.size, len(states.following), width), len(costs.size) + 2
        self.labels = Labels(
            key=np.full(shape, np.inf),
            times=np.zeros((*shape, 4)),
            total=np.zeros(shape),
            origin=np.full(shape, -1, np.int32),
            label=np.zeros(shape, np.int32),
            kind=np.zeros(shape, np.int16),
            done=np.zeros((shape[0], shape[1] * shape[2], nodes)),
        )
        self.labels.key[0, 0, 0] = 0.0
        self.tally = PlanTally(
            costs=costs,
            block=empty_block(costs),
            waits=_waits(model),
            labels=self.labels,
            following=states.following,
            cutoff=cutoff,
            length_weight=length_weight,
            found=np.zeros(1, dtype=np.int64),
            chosen=np.zeros(shape[1] * width, dtype=np.int64),
            have=np.zeros((shape[1] * width, nodes)),
            held=np.zeros(depths, dtype=np.int64),
            ready=np.zeros((depths, shape[1] * width, 2)),
            next=np.full((depths, 2), -1),
            own=np.zeros(nodes),
            earlier=np.zeros(len(costs.size), dtype=bool),
        )
        self.steps = 0

    def run(self, settings: Settings, step_limit: int) -> None:
        """Walk up the lattice; no plan is found if a limit stops the walk."""
        path, ideal, last = new_path(len(self.tally.earlier)), 0, self.lattice.size - 1
        while ideal < last and not settings.expired and self.steps <= step_limit:
            ideal, steps = advance(self.lattice, path, self.tally, ideal, EFFORT.beam_slice)
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


def _waits(model: SequenceModel) -> Waits:
    """Return the nodes that wait for one another, with the longest path in best times after each."""
    costs, member = model.costs, model.member
    waiting = np.repeat(np.arange(len(member)), np.diff(costs.before_start))
    pairs = np.stack((member[waiting], costs.before), axis=1)
    pairs = distinct(pairs[pairs[:, 0] != member[pairs[:, 1]]])
    of_block = rows_of(pairs[:, 0], pairs[:, 1], model.chain.n)
    later = rows_of(costs.before, waiting, len(member))
    time = np.where(np.isfinite(costs.work[:, 0])[:, member], costs.time, np.inf).min(axis=0)
    after = np.zeros(len(time))
    for u in costs.node[::-1].tolist():
        row = later.row(u)
        after[u] = (time[row] + after[row]).max(initial=0.0)
    return Waits(of_block.start, of_block.items, later.start, later.items, time + after, after)
