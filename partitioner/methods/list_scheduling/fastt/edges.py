"""The edges of a graph in which several tasks replace one, compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.list_scheduling.fastt.draft import CONCATENATE, PART, SPLIT
from partitioner.methods.list_scheduling.task_arrays import TaskArrays
from partitioner.problem.arrays import Ints

Rows = tuple[Ints, Ints, Ints]


@njit(cache=True, nogil=True)
def producers(arrays: TaskArrays, v: int, role: Ints) -> Rows:
    """Return where the rows of producers start, the producers, and the tensors that come from them."""
    old, items, tensors = arrays.before_start, arrays.before, arrays.before_tensor
    inputs, end, first, more = old[v + 1] - old[v], old[v + 1], len(arrays.cost), len(role) - 1
    joined = int(role[-1] == CONCATENATE)
    count = len(role) - inputs - joined
    start = np.empty(len(old) + more, dtype=np.int64)
    item = np.empty(len(items) + count * (inputs + joined), dtype=np.int64)
    tensor = np.empty_like(item)
    start[: v + 1], item[:end], tensor[:end] = old[: v + 1], items[:end], tensors[:end]
    at = old[v]
    for i in range(len(role)):
        if role[i] == SPLIT:
            at += 1
        else:
            sender, sent = (0, inputs) if role[i] == PART else (inputs, count)
            item[at : at + sent] = v + sender + np.arange(sent)
            tensor[at : at + sent] = first + sender + np.arange(sent)
            at += sent
        start[v + i + 1] = at
    start[v + len(role) :] = old[v + 1 :] + (at - end)
    item[at:], tensor[at:] = _shifted(items[end:], v, more), tensors[end:]
    return start, item, tensor


@njit(cache=True, nogil=True)
def consumers(arrays: TaskArrays, v: int, role: Ints) -> Rows:
    """Return where the rows of consumers start, the consumers, and the tensors that go to them."""
    old, items, tensors = arrays.after_start, arrays.after, arrays.after_tensor
    inputs = arrays.before_start[v + 1] - arrays.before_start[v]
    begin, first, more = old[v], len(arrays.cost), len(role) - 1
    joined = int(role[-1] == CONCATENATE)
    count = len(role) - inputs - joined
    start = np.empty(len(old) + more, dtype=np.int64)
    item = np.empty(len(items) + count * (inputs + joined), dtype=np.int64)
    tensor = np.empty_like(item)
    start[: v + 1], tensor[:begin] = old[: v + 1], tensors[:begin]
    item[:begin] = _shifted(items[:begin], v, more)
    _to_splits(arrays, v, item)
    at = begin
    for i in range(inputs + count * joined):
        reader, sent = (v + inputs, count) if i < inputs else (v + more, 1)
        item[at : at + sent] = reader + np.arange(sent)
        tensor[at : at + sent] = first + i
        at += sent
        start[v + i + 1] = at
    start[v + inputs + count * joined + 1 : v + len(role)] = at
    start[v + len(role) :] = old[v + 1 :] + (at - begin)
    item[at:], tensor[at:] = _shifted(items[begin:], v, more), tensors[begin:]
    return start, item, tensor


@njit(cache=True, nogil=True)
def _shifted(items: Ints, v: int, more: int) -> Ints:
    """Return the new numbers of tasks; task `v` becomes the last task of the block that replaces it."""
    return np.where(items >= v, items + more, items)


@njit(cache=True, nogil=True)
def _to_splits(arrays: TaskArrays, v: int, item: Ints) -> None:
    """Replace task `v` by its split nodes among the consumers."""
    first = arrays.before_start[v]
    for e in range(first, arrays.before_start[v + 1]):
        u = arrays.before[e]
        for i in range(arrays.after_start[u], arrays.after_start[u + 1]):
            if arrays.after[i] == v and arrays.after_tensor[i] == arrays.before_tensor[e]:
                item[i] = v + e - first
