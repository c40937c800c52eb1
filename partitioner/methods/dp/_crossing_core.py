"""Compiled: the tensors that cross the borders of a stage, and their costs by the groups of its neighbours.

A tensor whose other end is surely in the stage before or after travels on a known link. A neighbour that
does not hold a certain supernode has at most a certain number of supernodes, the *slack* of that supernode.
So the supernode is surely in a neighbour that is longer. Of neighbours it is only known whether they are
short, which is at most `window` supernodes, or long.
"""

from __future__ import annotations

from partitioner.base.compiled import njit

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
