"""The makespan of a placement whose devices run their tasks in a given order."""

from __future__ import annotations

import heapq

import numpy as np
from numba import njit

from partitioner.methods.list_scheduling.ground import (
    NOWHERE,
    Ground,
    State,
    arrives,
    ground_of,
    new_state,
    send,
)
from partitioner.preprocess.problem import Floats, Ints
from partitioner.preprocess.tasks import Tasks


def makespan(tasks: Tasks, device: Ints, order: Ints) -> float:
    """When the last task ends, see :func:`finish_times`."""
    return float(finish_times(tasks, device, order).max(initial=0.0))


def finish_times(tasks: Tasks, device: Ints, order: Ints) -> Floats:
    """Shape (n,): when each task ends, see :func:`as_run`."""
    return as_run(tasks, device, order)[1].finish


def as_run(tasks: Tasks, device: Ints, order: Ints) -> tuple[Ground, State]:
    """A placement as it runs.

    A task starts when the one before it on its device has ended and its inputs have arrived. Tensors leave
    as soon as they are made, once for each device that reads them; with contention in the order of the
    edges, one after another on the channels of both ends.

    Parameters
    ----------
    tasks
        The tasks.
    device, order
        As in :class:`partitioner.methods.list_scheduling.found.Found`.
    """
    ground, state = ground_of(tasks), new_state(tasks)
    state.device[:] = device
    if tasks.contention:
        _run_eagerly(ground, state, order, *_queues(device, order, len(tasks.limit)))
    else:
        _run(ground, state, order)
    return ground, state


def _queues(device: Ints, order: Ints, count: int) -> tuple[Ints, Ints]:
    """For each task the next one on its device, shape (n,), and the first of each device, shape (D,)."""
    following, first = np.full(len(order), NOWHERE), np.full(count, NOWHERE)
    for d in range(count):
        mine = order[device[order] == d]
        following[mine[:-1]] = mine[1:]
        first[d : d + 1] = mine[:1] if len(mine) else NOWHERE
    return following, first


@njit(cache=True, nogil=True)
def _run(ground: Ground, state: State, order: Ints) -> None:
    """Without contention: one task after another, in the order given."""
    for v in order:
        d = state.device[v]
        begin = state.end[d]
        for e in range(ground.before_start[v], ground.before_start[v + 1]):
            begin = max(begin, arrives(ground, state, ground.before[e], ground.before_tensor[e], d))
        state.start[v] = begin
        state.finish[v] = state.end[d] = begin + ground.time[d, v]


@njit(cache=True, nogil=True)
def _run_eagerly(ground: Ground, state: State, order: Ints, following: Ints, head: Ints) -> None:
    """With contention: from one end of a task to the next, the first in the order among equal ones."""
    position = np.argsort(order)
    missing = ground.before_start[1:] - ground.before_start[:-1]
    heap = [(0.0, 0) for _ in range(0)]
    for d in range(len(head)):
        _start(ground, state, d, head, missing, position, heap)
    while len(heap):
        _, place = heapq.heappop(heap)
        u = order[place]
        d = state.device[u]
        state.end[d], head[d] = state.finish[u], following[u]
        for e in range(ground.after_start[u], ground.after_start[u + 1]):
            send(ground, state, u, ground.after_tensor[e], state.device[ground.after[e]])
            missing[ground.after[e]] -= 1
        _start(ground, state, d, head, missing, position, heap)
        for e in range(ground.after_start[u], ground.after_start[u + 1]):
            other = state.device[ground.after[e]]
            if other != d and head[other] == ground.after[e]:
                _start(ground, state, other, head, missing, position, heap)


@njit(cache=True, nogil=True)
def _start(
    ground: Ground,
    state: State,
    d: int,
    head: Ints,
    missing: Ints,
    position: Ints,
    heap: list[tuple[float, int]],
) -> None:
    """Start the next task of a device if all its inputs are made."""
    v = head[d]
    if v == NOWHERE or missing[v] != 0:
        return
    missing[v] = NOWHERE
    begin = state.end[d]
    for e in range(ground.before_start[v], ground.before_start[v + 1]):
        u, tensor = ground.before[e], ground.before_tensor[e]
        begin = max(begin, state.finish[u] if state.device[u] == d else state.arrival[tensor, d])
    state.start[v], state.finish[v] = begin, begin + ground.time[d, v]
    heapq.heappush(heap, (state.finish[v], position[v]))
