"""The compiled step of the walk over pairs of cuts, device by device."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.virtual_stages.kernel import joint_transfers


@njit(cache=True, nogil=True)
def pair_step(
    value,
    limit,
    front,
    back,
    front_cost,
    back_cost,
    front_row,
    back_row,
    togo,
    nets,
    price,
    samples,
    found,
    parent,
):
    """Extend pipelines by the two stages of a device; return the number of steps.

    Parameters
    ----------
    value
        Shape (m, m): the least length of a weighted path over the stages so far, by the cuts to which they
        lead at the front and at the back; infinity if there are none.
    limit
        Only pipelines whose lengths may be at most this count.
    front, back
        Starts and items of the cuts to which stages lead from every cut, as rows.
    front_cost, back_cost
        Shape (m, m): what the stages add to the weighted path.
    front_row, back_row
        Shape (m, m): their parts of the length of the path along the device.
    togo
        Shape (m, m): the least that all further stages add, by the cuts reached.
    nets
        Those that are not in the times of stages, see
        :func:`partitioner.methods.virtual_stages.kernel.with_nets`.
    price, samples
        What a unit of their transfers adds to the weighted path at least, and to the path along the device.
    found, parent
        Shape (m, m): filled with the values after this device, and with the pair of cuts before it.
    """
    m, steps = len(value), 0
    front_start, front_items = front
    back_start, back_items = back
    for a in range(m):
        for b in range(m):
            if value[a, b] > limit:
                continue
            for i in range(front_start[a], front_start[a + 1]):
                c = front_items[i]
                path, row = value[a, b] + front_cost[a, c], front_row[a, c]
                if path > limit or row > limit:
                    continue
                for j in range(back_start[b], back_start[b + 1]):
                    e = back_items[j]
                    steps += 1
                    length = path + back_cost[b, e]
                    if row + back_row[b, e] > limit or length + togo[c, e] > limit:
                        continue
                    if length >= found[c, e]:
                        continue
                    into, out = joint_transfers(nets, a, c, b, e)
                    length += price * (into + out)
                    if row + back_row[b, e] + samples * (into + out) > limit:
                        continue
                    if length < found[c, e] and length + togo[c, e] <= limit:
                        found[c, e] = length
                        parent[c, e] = a * m + b
    return steps


@njit(cache=True, nogil=True)
def cheapest_sums(one, other):
    """Return the least sums over a middle cut, shape (m, m), of two matrices of that shape."""
    m = len(one)
    found = np.full((m, m), np.inf)
    for a in range(m):
        for c in range(m):
            if one[a, c] < np.inf:
                for b in range(m):
                    found[a, b] = min(found[a, b], one[a, c] + other[c, b])
    return found
