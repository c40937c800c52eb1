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


@njit(cache=True, _nrt=False)
def list_crossing(  # type: ignore[no-untyped-def]
    net_start, net_of, pins, source, enter, leave, ends, inside, held, placed, seen, stamp, stage, length,
    start, ideal, crossing,
):  # fmt: skip
    """List the nets with supernodes in the stage and outside; return how many there are.

    Parameters
    ----------
    net_start, net_of, pins, source, enter, leave, ends
        The nets, and what is known of other ends.
    inside, held, placed
        The pins of each net in the stage; and which supernodes are in the stage, and before it.
    seen, stamp
        Shape (nets,): the stamp of the last stage in which a net was met; and that of this stage.
    stage, length, start, ideal
        The supernodes of the stage and their number, and the ideals before and with the stage.
    crossing
        Shape (nets, 6): cost, whether the stage makes the tensor, and the least and largest slack of the
        other ends that are placed before the stage and after it, -1 if there are none; it is written.
    """
    count = 0
    for s in range(length):
        v = stage[s]
        for i in range(net_start[v], net_start[v + 1]):
            net = net_of[i]
            if seen[net] == stamp or inside[net] == pins[net]:
                continue
            seen[net] = stamp
            row = crossing[count]
            row[LEAST_BEFORE] = row[MOST_BEFORE] = row[LEAST_AFTER] = row[MOST_AFTER] = NONE
            own = held[source[net]]
            row[COST], row[OUT] = leave[net] if own else enter[net], 1.0 if own else 0.0
            for e in range(ends.pin_start[net], ends.pin_start[net + 1]):
                w = ends.pin[e]
                if held[w] or not (own or w == source[net]):
                    continue
                at = LEAST_BEFORE if placed[w] else LEAST_AFTER
                slack = float(ends.size[start] - ends.below[w])
                if not placed[w]:
                    slack = float(len(ends.below) - ends.size[ideal] - ends.above[w])
                row[at] = slack if row[at] == NONE else min(row[at], slack)
                row[at + 1] = max(row[at + 1], slack)
            count += 1
    return count


@njit(cache=True, _nrt=False)
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
