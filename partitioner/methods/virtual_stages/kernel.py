"""The compiled parts: transfers of all stages, and a step of the dynamic program over pairs of cuts."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit


@njit(cache=True, nogil=True)
def path_ends(stage, direction, before, sender, length, sent, fetched, end, via):
    """Return the last pass of the longest path; fill `end` and `via`.

    Parameters
    ----------
    stage, direction, before, sender
        See :class:`partitioner.methods.virtual_stages.pass_graph.PassGraph`.
    length
        Shape (stages, 3): how long the device is busy with each kind of pass.
    sent, fetched
        Shape (stages, 3): how long a pass on another device waits after it, and before it, in addition.
    end, via
        Shape (n,): when each pass ends, and the pass that it waits for last, or -1.
    """
    last = 0
    for k in range(len(stage)):
        i, j = before[k], sender[k]
        start = 0.0 if i < 0 else end[i]
        via[k] = i
        if j >= 0:
            arrival = end[j] + sent[stage[j], direction[j]] + fetched[stage[k], direction[k]]
            if arrival > start:
                start = arrival
                via[k] = j
        end[k] = start + length[stage[k], direction[k]]
        if end[k] > end[last]:
            last = k
    return last


@njit(cache=True, nogil=True)
def count_passes(stage, direction, via, last, stages):
    """Return how many passes of each stage and kind are on a path, shape (stages, 3)."""
    found = np.zeros((stages, 3))
    k = last
    while k >= 0:
        found[stage[k], direction[k]] += 1.0
        k = via[k]
    return found


@njit(cache=True, nogil=True)
def transfers(nested, held, sent, pins, cost, into, out):
    """Add to `into` and `out`, shape (m, m), the costs of the nets that each stage takes part in.

    Parameters
    ----------
    nested
        Shape (m, m): whether there is a stage between two cuts.
    held, sent
        Shape (m, nets): how many pins of a net are before each cut, and whether its source is.
    pins, cost
        Shape (nets,): how many pins a net has, and its cost.
    """
    m = len(nested)
    for a in range(m):
        for b in range(m):
            if not nested[a, b]:
                continue
            for e in range(len(cost)):
                inside = held[b, e] - held[a, e]
                if inside == 0 or inside == pins[e]:
                    continue
                if sent[b, e] - sent[a, e] > 0:
                    out[a, b] += cost[e]
                else:
                    into[a, b] += cost[e]


@njit(cache=True, nogil=True)
def next_device(value, limit, most_rest, rest, front, back, nets, samples, room, found, parent):
    """Extend plans by one device, which takes a stage at each of two places; return the number of steps.

    Parameters
    ----------
    value
        Shape (m, m): the least largest load of plans that have come to two cuts, at the front and at the
        back; infinity if there is none.
    limit
        Only loads below it count.
    most_rest, rest
        The most processing time that may be left, and that which is left at two cuts, shape (m, m).
    front, back
        The stages at either place, see :class:`partitioner.methods.virtual_stages.pairs.PairedStages`.
    nets
        The nets that are not in the terms of the stages, see :func:`with_nets`.
    samples, room
        The combinations of samples in flight, shape (combinations, 2), and the memory.
    found, parent
        Shape (m, m): filled with the values after this device, and with the pair of cuts before it.
    """
    m, steps = len(value), 0
    first_terms, first_busy, first_start, first_items = front[0], front[1], front[2], front[3]
    last_terms, last_busy, last_start, last_items = back[0], back[1], back[2], back[3]
    for a in range(m):
        for b in range(m):
            if not value[a, b] < limit:
                continue
            for i in range(first_start[a], first_start[a + 1]):
                c = first_items[i]
                if first_busy[a, c] >= limit:
                    break
                if not first_terms[0, a, c] < limit:
                    continue
                for j in range(last_start[b], last_start[b + 1]):
                    d = last_items[j]
                    steps += 1
                    if first_busy[a, c] + last_busy[b, d] >= limit:
                        break
                    if not rest[c, d] <= most_rest:
                        continue
                    most = min(limit, found[c, d])
                    load = value[a, b]
                    for t in range(len(first_terms)):
                        load = max(load, first_terms[t, a, c] + last_terms[t, b, d])
                    if load < most:
                        load = max(load, with_nets(first_terms, last_terms, nets, a, c, b, d))
                    if load < most and holds(front, back, a, c, b, d, samples, room):
                        found[c, d] = load
                        parent[c, d] = a * m + b
    return steps


@njit(cache=True, nogil=True)
def with_nets(first_terms, last_terms, nets, a, c, b, d):
    """Return the load of a device with the stages from a to c and from b to d, or d to b, with further nets.

    `nets` has the arrays of :func:`transfers` for those nets: `held`, `sent`, `pins` and `cost`.
    """
    into, out = joint_transfers(nets, a, c, b, d)
    load = 0.0
    for t in range(len(first_terms)):
        term = first_terms[t, a, c] + last_terms[t, b, d]
        if len(first_terms) == 1 or (len(first_terms) == 2 and t == 1):
            term += into + out
        elif t > 0:
            term += into if t == 1 else out
        load = max(load, term)
    return load


@njit(cache=True, nogil=True)
def joint_transfers(nets, a, c, b, d):
    """Return the transfers in and out of a device with two stages, see :func:`with_nets`."""
    held, sent, pins, cost = nets
    into, out = 0.0, 0.0
    for e in range(len(cost)):
        inside = held[c, e] - held[a, e] + abs(held[d, e] - held[b, e])
        if inside == 0 or inside == pins[e]:
            continue
        if sent[c, e] - sent[a, e] + abs(sent[d, e] - sent[b, e]) > 0:
            out += cost[e]
        else:
            into += cost[e]
    return into, out


@njit(cache=True, nogil=True)
def holds(front, back, a, c, b, d, samples, room):
    """Whether a device can hold the stage from a to c at the front and that from b to d at the back."""
    if room == np.inf:
        return True
    held = front[4][a, c] + back[4][b, d] + max(front[6][a, c], back[6][b, d])
    largest = 0.0
    for s in range(len(samples)):
        largest = max(largest, samples[s, 0] * front[5][a, c] + samples[s, 1] * back[5][b, d])
    return held + largest <= room
