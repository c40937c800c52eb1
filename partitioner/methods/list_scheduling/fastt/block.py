"""The edges of a graph in which several tasks take the place of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.preprocess.problem import Ints, Rows
from partitioner.preprocess.tasks import Tasks


@dataclass(frozen=True, eq=False)
class Block:
    """The tasks that take the place of a task: split nodes, parts, and at most one concatenate node.

    Parameters
    ----------
    task
        The number of the task, which is that of the first of the block.
    producers, tensors
        Shape (p,): what it reads; there is a split node for each.
    parts
        How many parts there are.
    joined
        1 if there is a concatenate node, else 0.
    first_tensor
        The number of the first new tensor: one for each split node, then one for each part.
    """

    task: int
    producers: Ints
    tensors: Ints
    parts: int
    joined: int
    first_tensor: int

    @classmethod
    def of(cls, tasks: Tasks, v: int, parts: int) -> Block:
        """The block that takes the place of task `v`."""
        row = slice(tasks.before.start[v], tasks.before.start[v + 1])
        read = bool(tasks.after.start[v] < tasks.after.start[v + 1])
        producers, tensors = tasks.before.items[row], tasks.before_tensor[row]
        return cls(v, producers, tensors, parts, int(read), len(tasks.cost))

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many split nodes, parts and concatenate nodes there are."""
        return len(self.producers), self.parts, self.joined

    @property
    def length(self) -> int:
        """How many tasks there are."""
        return sum(self.counts)

    @property
    def first_part(self) -> int:
        """The number of the first part."""
        return self.task + len(self.producers)

    @property
    def last(self) -> int:
        """The number of the concatenate node, or of the last part."""
        return self.task + self.length - 1

    def shifted(self, items: Ints) -> Ints:
        """New numbers of tasks; whoever named the task as a producer now names the concatenate node."""
        return np.where(items >= self.task, items + (self.length - 1), items)


def rows_with(tasks: Tasks, block: Block) -> tuple[Rows, Ints, Rows, Ints]:
    """Producers with tensors, and consumers with tensors, once the block has taken the place of its task.

    Rows keep the order of the edges if that is by consumer.
    """
    return *_before(tasks, block), *_after(tasks, block)


def _before(tasks: Tasks, block: Block) -> tuple[Rows, Ints]:
    v, inputs, joined = block.task, len(block.producers), block.joined
    start, items, tensor = tasks.before.start, tasks.before.items, tasks.before_tensor
    old = slice(start[v], start[v + 1])
    splits = np.tile(np.arange(inputs), block.parts)
    parts = np.arange(block.parts * joined)
    counts = np.repeat([1, inputs, block.parts], block.counts)
    new_items = (items[: old.stop], v + splits, block.first_part + parts, block.shifted(items[old.stop :]))
    first = block.first_tensor
    new_tensors = (tensor[: old.stop], first + splits, first + inputs + parts, tensor[old.stop :])
    return Rows(_starts(start, v, counts), np.concatenate(new_items)), np.concatenate(new_tensors)


def _after(tasks: Tasks, block: Block) -> tuple[Rows, Ints]:
    v, inputs, joined = block.task, len(block.producers), block.joined
    start, items, tensor = tasks.after.start, tasks.after.items, tasks.after_tensor
    old = slice(start[v], start[v + 1])
    parts, splits = np.arange(block.parts), np.repeat(np.arange(inputs), block.parts)
    counts = np.repeat([block.parts, joined, old.stop - old.start], block.counts)
    new_items = (
        _to_splits(tasks, block),
        np.tile(block.first_part + parts, inputs),
        np.full(block.parts * joined, block.last),
        block.shifted(items[old.start :]),
    )
    first = block.first_tensor
    made = (first + inputs + parts)[: block.parts * joined]
    new_tensors = (tensor[: old.start], first + splits, made, tensor[old.start :])
    return Rows(_starts(start, v, counts), np.concatenate(new_items)), np.concatenate(new_tensors)


def _to_splits(tasks: Tasks, block: Block) -> Ints:
    """The consumers of all tasks before the block; the split nodes in place of the task."""
    v = block.task
    items = tasks.after.items[: tasks.after.start[v]]
    found = np.flatnonzero(items == v)
    owner = np.searchsorted(tasks.after.start, found, side="right") - 1
    number = {
        pair: j for j, pair in enumerate(zip(block.producers.tolist(), block.tensors.tolist(), strict=True))
    }
    pairs = zip(owner.tolist(), tasks.after_tensor[found].tolist(), strict=True)
    new = block.shifted(items)
    new[found] = [v + number[pair] for pair in pairs]
    return new


def _starts(start: Ints, v: int, counts: Ints) -> Ints:
    """Where the rows start once those of the block have taken the place of one."""
    ends = start[v] + np.cumsum(counts)
    return np.concatenate((start[: v + 1], ends, start[v + 2 :] + (ends[-1] - start[v + 1])))
