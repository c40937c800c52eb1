"""A lower bound on makespans from the transfers that cannot be avoided.

Connected tasks that use k devices cut at least k - 1 of their edges. A path through a cut edge takes its
transfer in addition. On fewer devices the tasks take longer, or do not fit in the memory.
"""

from __future__ import annotations

import numpy as np

from partitioner.methods.list_scheduling.ranks import transfer_lines
from partitioner.methods.list_scheduling.windows import along_lines
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.tasks import Tasks


def cut_bound(tasks: Tasks, least: Floats, head: Floats, tail: Floats) -> float:
    """Return a lower bound on the makespan, infinity if some connected tasks do not fit in all memories.

    Parameters
    ----------
    tasks
        The tasks.
    least, head, tail
        Shape (n,): the least time of each task, before its start, and after its end.
    """
    edges = np.column_stack((tasks.before.items, tasks.before.owners()))
    transfer = along_lines(transfer_lines(tasks)[0], tasks.cost).min(axis=0, initial=np.inf)
    through = (head + least)[edges[:, 0]] + transfer[tasks.before_tensor] + (least + tail)[edges[:, 1]]
    component = _components(tasks, edges)
    apart = tasks.group[edges[:, 0]] != tasks.group[edges[:, 1]]
    cuts, where = through[apart], component[edges[apart, 0]]
    return max(
        (
            _of_component(tasks, component == c, least, np.sort(cuts[where == c]))
            for c in np.unique(component).tolist()
        ),
        default=0.0,
    )


def _of_component(tasks: Tasks, inside: Bools, least: Floats, cuts: Floats) -> float:
    """Return the bound of connected tasks; `cuts` are the lengths of the paths through each edge, sorted."""
    room = np.cumsum(np.sort(tasks.limit)[::-1])
    count = 1 + np.arange(min(len(room), 1 + len(cuts)))
    value = np.maximum(least[inside].sum() / count, np.concatenate(([0.0], cuts))[count - 1])
    return float(value[room[count - 1] >= tasks.size[inside].sum()].min(initial=np.inf))


def _components(tasks: Tasks, edges: Ints) -> Ints:
    """Return a number for each task that is the same where edges and groups connect tasks, shape (n,)."""
    label = np.arange(tasks.n)
    first = np.unique(tasks.group, return_index=True)[1][tasks.group]
    pairs = np.concatenate((edges, np.column_stack((first, np.arange(tasks.n)))))
    while True:
        low = label[pairs].min(axis=1)
        after = label.copy()
        for end in (0, 1):
            np.minimum.at(after, pairs[:, end], low)
        after = after[after]
        if np.array_equal(after, label):
            return label
        label = after
