"""The compiled walk up the lattice that fills the table of the dynamic program.

``value[I, c]`` is the smallest largest load of a chain that covers ideal I with c devices, c a vector
of counts by kind in mixed radix. The stages are those of :mod:`partitioner.methods.dp._walk_core`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp._transfers_core import add_nets, remove_nets
from partitioner.methods.dp._walk_core import walk_of
from partitioner.methods.dp.lattice import Ints32, relocate
from partitioner.problem.arrays import Bools, Floats, Ints


class StageModel(NamedTuple):
    """The costs of stages: K kinds, n supernodes, E nets.

    Parameters
    ----------
    work
        Shape (K, n): time, infinity where a kind may not run a supernode.
    size, memory
        Shapes (n,) and (K,): memory that supernodes need, and that devices have.
    transfer_factor, communication
        Shape (K,): the time of a transfer of cost 1; and the number of the communication model.
    net_start, net
        Rows over supernodes: the nets of each.
    pins, cost, source
        Shape (E,): how many supernodes a net has, its cost, and the supernode that makes the tensor.
    """

    work: Floats
    size: Floats
    memory: Floats
    transfer_factor: Floats
    communication: int
    net_start: Ints
    net: Ints
    pins: Ints
    cost: Floats
    source: Ints


class ChainSearchSpec(NamedTuple):
    """The chains that the sweep looks for: S states (vectors of used devices), I ideals.

    Parameters
    ----------
    threshold
        Only stages of at most this load count.
    floor
        Largest loads up to this one count as equal; at most the threshold.
    following
        Shape (S, K): the state with one more device of a kind, -1 if none is left.
    capacity
        Shape (S,): joint capacity of the devices that a state leaves.
    remaining
        Shape (I,): weight of the supernodes outside an ideal.
    above
        Shape (n,): weight that a walk can no longer add once it has skipped a supernode.
    growth
        Shape (K, n): by how much a supernode may raise the load of a stage that takes it from later stages;
        infinity if that may raise the load of a later stage.
    easiest
        Shape (K, I): the supernode of least growth among those that can follow an ideal, or -1.
    """

    threshold: float
    floor: float
    following: Ints
    capacity: Floats
    remaining: Floats
    above: Floats
    growth: Floats
    easiest: Ints32


class ChainTable(NamedTuple):
    """The table of the dynamic program, shape (I, S) each.

    Parameters
    ----------
    value
        The smallest possible largest load, infinity if there is no chain.
    origin, kind
        The ideal before the last stage, and the kind of device of that stage.
    """

    value: Floats
    origin: Ints32
    kind: NDArray[np.int16]


class ChainMoves(NamedTuple):
    """Room for the useful moves (kind, next state) from an ideal: M moves at most.

    Parameters
    ----------
    reached
        Shape (S,): the smallest load with which fewer devices reach the ideal.
    move, least
        Shapes (M, 2) and (M,): kind and next state, and the largest load of the chain before the move.
    useful
        Shape (K,): whether a move is to a device of the kind.
    """

    reached: Floats
    move: Ints
    least: Floats
    useful: Bools


class ChainTally(NamedTuple):
    """The current stage of a walk, and the table that it is written to; at depth d it has d supernodes.

    Parameters
    ----------
    model, search, table
        The costs of stages, the chains that are looked for, and the table.
    moves, found
        The useful moves from the ideal at which it begins, and shape (1,): how many there are.
    inside, before
        Shape (E,): the pins of each net in the stage, and in the ideal at which it begins.
    compute, size, transfer
        Shapes (n + 2, K), (n + 2,) and (n + 2, 3): by depth its times and memory, and its transfers in, out,
        and of nets that stay cut.
    load
        Shape (K,): its loads; infinity on a kind whose memory it exceeds.
    """

    model: StageModel
    search: ChainSearchSpec
    table: ChainTable
    moves: ChainMoves
    found: Ints
    inside: Ints
    before: Ints
    compute: Floats
    size: Floats
    transfer: Floats
    load: Floats


def _enter(tally, start, ideal, depth, v):  # type: ignore[no-untyped-def]
    """Add a supernode, unless no kind can then run the stage within the threshold, nor any larger one."""
    model, compute, size, transfer, load = tally.model, tally.compute, tally.size, tally.transfer, tally.load
    add_nets(model, model.cost, model.cost, tally.before, tally.inside, v, transfer, depth)
    size[depth + 1] = size[depth] + model.size[v]
    possible = False
    for k in range(len(load)):
        compute[depth + 1, k] = compute[depth, k] + model.work[k, v]
        load[k], bound = growing_load(
            compute[depth + 1, k], transfer[depth + 1, 0], transfer[depth + 1, 1], transfer[depth + 1, 2],
            model.transfer_factor[k], model.communication,
        )  # fmt: skip
        if size[depth + 1] > model.memory[k]:
            load[k] = np.inf
        elif tally.moves.useful[k] and bound <= tally.search.threshold:
            possible = True
    if not possible:
        remove_nets(model, tally.inside, v)
    return possible


def _leave(tally, v):  # type: ignore[no-untyped-def]
    remove_nets(tally.model, tally.inside, v)


def _reach(tally, start, ideal, depth, target):  # type: ignore[no-untyped-def]
    """Write the stage to the table for the moves that allow it.

    It is left out if it can take one more supernode without a larger load of any later stage, and without a
    load above the least of its chain: that is at most `room` then.
    """
    model, search, table, move, least = (
        tally.model, tally.search, tally.table, tally.moves.move, tally.moves.least
    )  # fmt: skip
    remaining = search.remaining[ideal]
    for k in range(len(tally.load) if remaining <= target else 0):
        load, easy = tally.load[k], search.easiest[k, ideal]
        if load > search.threshold:
            continue
        fits = easy >= 0 and tally.size[depth] + model.size[easy] <= model.memory[k]
        room = load + search.growth[k, easy] if fits else np.inf
        for m in range(tally.found[0]):
            t = move[m, 1]
            if move[m, 0] == k and remaining <= search.capacity[t] and room > least[m]:
                largest = max(least[m], load)
                if largest < table.value[ideal, t]:
                    table.value[ideal, t] = largest
                    table.origin[ideal, t] = start
                    table.kind[ideal, t] = k
    return 0


def _lost(tally, v):  # type: ignore[no-untyped-def]
    return tally.search.above[v]


_walk = walk_of(_enter, _leave, _reach, _lost)


def new_tally(model: StageModel, search: ChainSearchSpec, table: ChainTable) -> ChainTally:
    """Return an empty stage, and room for the moves from an ideal."""
    depths, kinds = len(model.size) + 2, len(model.memory)
    states, nets = len(search.capacity), len(model.pins)
    moves = ChainMoves(
        np.empty(states), np.empty((states * kinds, 2), np.int64), np.empty(states * kinds),
        np.empty(kinds, np.bool_),
    )  # fmt: skip
    return ChainTally(
        model, search, table, moves, np.zeros(1, np.int64), np.zeros(nets, np.int64),
        np.zeros(nets, np.int64), np.zeros((depths, kinds)), np.zeros(depths), np.zeros((depths, 3)),
        np.empty(kinds),
    )  # fmt: skip


@njit(cache=True, _nrt=False)
def sweep(lattice, tally, path, first, budget):  # type: ignore[no-untyped-def]
    """Extend the chains that end in ideals `first`, `first` + 1, ... by one stage.

    Parameters
    ----------
    lattice, tally, path
        See :mod:`partitioner.methods.dp.lattice`, :func:`new_tally` and
        :mod:`partitioner.methods.dp._walk_core`; the table of the tally is written.
    first
        The ideal to start with.
    budget
        Return after the ideal at which this many steps have been walked.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals when done), and the steps walked.
    """
    model, ideals = tally.model, len(lattice.parent)
    tally.before[:] = 0
    place, steps = 0, 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        tally.found[0], target = list_moves(tally.table.value[start], tally.search, tally.moves)
        if tally.found[0] == 0:
            continue
        relocate(lattice.parent, lattice.added, model.net_start, model.net, tally.before, place, start)
        place = start
        steps += _walk(lattice, path, start, target, tally)
    return ideals, steps


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def list_moves(value, search, moves):  # type: ignore[no-untyped-def]
    """List the useful moves from an ideal of these values.

    A state is useless if another one reaches the same ideal with fewer devices and no larger load, or no
    load above the floor. Returned are the number of moves, and the largest weight that they may leave.
    """
    following, reached, useful = search.following, moves.reached, moves.useful
    states, kinds = following.shape
    count, target = 0, -1.0
    useful[:] = False
    reached[:] = np.inf  # smallest load with which fewer devices reach the ideal
    for s in range(states):
        mine = max(value[s], search.floor)
        worthy = mine <= search.threshold and reached[s] > mine
        for k in range(kinds):
            t = following[s, k]
            if t >= 0:
                reached[t] = min(reached[t], min(reached[s], mine))
                if worthy:
                    moves.move[count, 0], moves.move[count, 1] = k, t
                    moves.least[count] = mine
                    count += 1
                    useful[k] = True
                    target = max(target, search.capacity[t])
    return count, target
