"""Compiled: the transfers of a stage, in each of two passes, and by the groups of the stages beside it.

A tensor leaves a stage in the pass in which it is made. It arrives in the forward pass if the stage holds an
*early* reader, one that reads it forward, else in the backward pass. Pass 0 is the forward pass, 1 the
backward pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Bools, Floats, Ints

INTO, LEAVING, STAYING = 0, 2, 4  # columns of `moved`; those of the backward pass are the next ones
AMOUNTS = 6


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def add_nets(costs, enter, leave, before, inside, v, moved, depth):  # type: ignore[no-untyped-def]
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1.

    They are the first columns of `moved`: what comes in, what goes out, and what every larger stage with the
    same start transfers too. `enter` and `leave` are the costs of nets that come in and that go out.
    """
    net_of, pins, source = costs.net, costs.pins, costs.source
    into, out, stay = moved[depth, 0], moved[depth, 1], moved[depth, 2]
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net = net_of[i]
        inside[net] += 1
        if inside[net] == 1:
            if source[net] == v:
                out += leave[net]
            else:
                into += enter[net]
            if before[net] > 0:
                stay += min(enter[net], leave[net])
        elif source[net] == v:
            into -= enter[net]
            out += leave[net]
        if inside[net] == pins[net]:
            out -= leave[net]
    moved[depth + 1, 0], moved[depth + 1, 1], moved[depth + 1, 2] = into, out, stay


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def remove_nets(costs, inside, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        inside[costs.net[i]] -= 1


class PassNets(NamedTuple):
    """The tensors of the current stage of a walk; at depth d it has d supernodes.

    Parameters
    ----------
    inside, early, before
        Shape (E,): the pins of each net in the stage, its early readers there, and its pins in the ideal at
        which the stage begins.
    holds
        Shape (E,): whether the stage makes the tensor.
    moved
        Shape (n + 2, 6): by depth, the costs of what comes in, what goes out, and what every larger stage
        with the same start transfers too, in each pass.
    """

    inside: Ints
    early: Ints
    before: Ints
    holds: Bools
    moved: Floats


def new_nets(nodes: int, nets: int) -> PassNets:
    """Return the tensors of an empty stage."""
    inside, early, before = (np.zeros(nets, np.int64) for _ in range(3))
    return PassNets(inside, early, before, np.zeros(nets, np.bool_), np.zeros((nodes + 2, AMOUNTS)))


@njit(cache=True, inline="always")
def add_pass_nets(costs, nets, v, depth):  # type: ignore[no-untyped-def]
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1."""
    net_of, read, pins, cost, source = costs.net, costs.read, costs.pins, costs.enter, costs.source
    inside, early, holds, moved, above = nets.inside, nets.early, nets.holds, nets.moved, depth + 1
    for amount in range(AMOUNTS):
        moved[above, amount] = moved[depth, amount]
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net, fresh = net_of[i], inside[net_of[i]] == 0
        due, old = costs.made[net], 0 if early[net] > 0 else 1
        inside[net] += 1
        if source[net] == v:
            holds[net] = True
            moved[above, LEAVING + due] += cost[net]
            if not fresh:
                moved[above, INTO + old] -= cost[net]
            if nets.before[net] > 0 and (fresh or old != due):
                moved[above, STAYING + due] += cost[net]
        else:
            early[net] += 1 - read[i]
            if not holds[net] and (fresh or (read[i] == 0 and old == 1)):
                moved[above, INTO + read[i]] += cost[net]
                if not fresh:
                    moved[above, INTO + 1] -= cost[net]
                if nets.before[net] > 0 and read[i] == due:
                    moved[above, STAYING + due] += cost[net]
        if inside[net] == pins[net]:
            moved[above, LEAVING + due] -= cost[net]


@njit(cache=True, inline="always")
def remove_pass_nets(costs, nets, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(costs.net_start[v], costs.net_start[v + 1]):
        net = costs.net[i]
        nets.inside[net] -= 1
        if costs.source[net] == v:
            nets.holds[net] = False
        else:
            nets.early[net] -= 1 - costs.read[i]


COST, OUT, LEAST_BEFORE, MOST_BEFORE, LEAST_AFTER, MOST_AFTER = range(6)  # columns of `crossing`
NONE = -1.0
STAMP = 3  # the place in `StageWalk.at` of the stamp of the current stage


@njit(cache=True, inline="always")
def list_crossing(costs, ends, walk, length, start, ideal, crossing):  # type: ignore[no-untyped-def]
    """List the nets with supernodes in the stage and outside; return how many there are.

    Parameters
    ----------
    costs, ends
        The nets, and what is known of other ends, see :mod:`partitioner.methods.dp.stages`.
    walk
        The current stage, a :class:`partitioner.methods.dp._stages_core.StageWalk`.
    length, start, ideal
        The number of its supernodes, and the ideals before and with the stage.
    crossing
        Shape (nets, 6): cost, whether the stage makes the tensor, and the least and largest slack of the
        other ends that are placed before the stage and after it, -1 if there are none; it is written.
    """
    source, held, seen, stamp = costs.source, walk.held, walk.seen, walk.at[STAMP]
    count = 0
    for s in range(length):
        v = walk.stage[s]
        for i in range(costs.net_start[v], costs.net_start[v + 1]):
            net = costs.net[i]
            if seen[net] == stamp or walk.inside[net] == costs.pins[net]:
                continue
            seen[net] = stamp
            row = crossing[count]
            row[LEAST_BEFORE] = row[MOST_BEFORE] = row[LEAST_AFTER] = row[MOST_AFTER] = NONE
            own = held[source[net]]
            row[COST], row[OUT] = costs.leave[net] if own else costs.enter[net], 1.0 if own else 0.0
            for e in range(ends.pin_start[net], ends.pin_start[net + 1]):
                w = ends.pin[e]
                if held[w] or not (own or w == source[net]):
                    continue
                at = LEAST_BEFORE if walk.placed[w] else LEAST_AFTER
                slack = float(ends.size[start] - ends.below[w])
                if not walk.placed[w]:
                    slack = float(len(ends.below) - ends.size[ideal] - ends.above[w])
                row[at] = slack if row[at] == NONE else min(row[at], slack)
                row[at + 1] = max(row[at + 1], slack)
            count += 1
    return count


@njit(cache=True, inner=True, _nrt=False)
def joint_transfers(crossing, ends, here, froms, goes, moved):  # type: ignore[no-untyped-def]
    """Write the costs of transfers in and out of a stage in group `here`, by the groups of its neighbours.

    `moved` has shape (groups, groups, 2), of which `froms` x `goes` are written.
    """
    real, window = ends.real, ends.window
    for p in range(froms):
        for q in range(goes):
            into = out = 0.0
            for c in range(len(crossing)):
                row = crossing[c]
                farthest = 0.0
                for side in range(2):
                    at = LEAST_BEFORE + 2 * side
                    if row[at] == NONE:
                        continue
                    other = q if side else p
                    sure = window if other < real else 0
                    if row[at] <= sure:
                        farthest = max(farthest, ends.link[here, other])
                    if row[at + 1] > sure:
                        farthest = max(farthest, ends.unknown[here])
                if row[OUT] > 0.0:
                    out += row[COST] * farthest
                else:
                    into += row[COST] * farthest
            moved[p, q, 0], moved[p, q, 1] = into, out
