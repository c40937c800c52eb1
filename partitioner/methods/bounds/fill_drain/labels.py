"""The lengths of the paths through the stages behind a pipeline's next stage, compiled.

If backward passes return, the label of a forward pass F and a backward pass B is the length of the longest
path from F to B of the first of these stages. Else both passes lead to later stages, and the label of a pass
is the length of the longest path from it to the end. Several pipelines with the same supernodes and devices
are known at once, each in a slot.
"""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True)
def add_returning(forwards, backwards, behind, forward, backward, transfers, found):  # type: ignore[no-untyped-def]
    """Write to `found` the labels of the stages that begin with a stage before those of labels `behind`.

    Parameters
    ----------
    forwards, backwards
        Shape (F + B, F + B): see :class:`partitioner.methods.bounds.fill_drain.rows.RowEvents`.
    behind, found
        Shape (F, B): the longest paths, minus infinity if there are none.
    forward, backward
        The times of both passes.
    transfers
        The time of the transfers of a sample that is not part of these.
    """
    entries, exits = found.shape
    reach, arrival = np.empty(entries), np.empty(exits)
    for i in range(entries):
        for a in range(entries):
            reach[a] = -np.inf
            if forwards[i, a] >= 0:
                reach[a] = forwards[i, a] * forward + backwards[i, a] * backward
        for c in range(exits):
            arrival[c] = -np.inf
            for a in range(entries):
                arrival[c] = max(arrival[c], reach[a] + behind[a, c])
            if arrival[c] == -np.inf:
                continue
            q = entries + c
            for a in range(entries):
                if forwards[q, a] >= 0:
                    further = forwards[q, a] * forward + backwards[q, a] * backward
                    reach[a] = max(reach[a], arrival[c] + further)
        for j in range(exits):
            q, found[i, j] = entries + j, -np.inf
            if forwards[i, q] >= 0:
                found[i, j] = forwards[i, q] * forward + backwards[i, q] * backward
            for c in range(j + 1):
                p = entries + c
                if arrival[c] > -np.inf and forwards[p, q] >= 0:
                    further = forwards[p, q] * forward + backwards[p, q] * backward
                    found[i, j] = max(found[i, j], arrival[c] + further + transfers)


@njit(cache=True)
def add_onward(forwards, backwards, behind, forward, backward, found):  # type: ignore[no-untyped-def]
    """Write the labels to `found` where both passes lead to later stages; shape (F + B,) each."""
    for p in range(len(found)):
        found[p] = -np.inf
        for q in range(len(found)):
            if forwards[p, q] >= 0 and behind[q] > -np.inf:
                own = forwards[p, q] * forward + backwards[p, q] * backward
                found[p] = max(found[p], own + behind[q])


@njit(cache=True)
def keep(table, ideal, state, value, label, whole, close, start, slot, kind, copies):  # type: ignore[no-untyped-def]
    """Keep the least time of a sample and the labels of stages that hold an ideal on the devices of a state.

    They are left out if those of a slot are no larger. If no slot is free, or one differs only by `close` in
    one direction, the slot that loses least gets the minima of both. `whole` is the number of the label of
    the whole schedule, which says whose stages are remembered.
    """
    used, chosen, least = table.used[ideal, state], -1, np.inf
    for i in range(used):
        above, below = difference(table.value[ideal, state, i], table.label[ideal, state, i], value, label)
        if above == 0.0:
            return
        if min(above, below) < least:
            chosen, least = i, min(above, below)
    if chosen < 0 or (least > close and used < table.value.shape[2]):
        chosen = used
        table.used[ideal, state] += 1
        table.value[ideal, state, chosen] = np.inf
        table.label[ideal, state, chosen] = np.inf
    known = table.label[ideal, state, chosen]
    better = value < table.value[ideal, state, chosen]
    if len(label) > 0:
        better = label[whole] < known[whole]
    if better:
        table.origin[ideal, state, chosen], table.slot[ideal, state, chosen] = start, slot
        table.kind[ideal, state, chosen], table.copies[ideal, state, chosen] = kind, copies
    table.value[ideal, state, chosen] = min(table.value[ideal, state, chosen], value)
    for j in range(len(label)):
        known[j] = min(known[j], label[j])


@njit(cache=True, inline="always")
def difference(known, paths, value, label):  # type: ignore[no-untyped-def]
    """Return by how much known times and paths exceed others at most, and are exceeded at most."""
    above, below = max(0.0, known - value), max(0.0, value - known)
    for j in range(len(label)):
        if paths[j] > label[j]:
            above = max(above, paths[j] - label[j])
        elif paths[j] < label[j]:
            below = max(below, label[j] - paths[j])
    return above, below
