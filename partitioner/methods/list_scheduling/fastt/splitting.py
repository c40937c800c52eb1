"""SplitOperation (FastT, Algorithm 2) on arrays: parts of a task, and what divides and joins its tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.list_scheduling.fastt.block import Block, rows_with
from partitioner.preprocess.problem import Floats, Ints
from partitioner.preprocess.tasks import Tasks

T = TypeVar("T", bound=np.generic)
WHOLE, SPLIT, PART, CONCATENATE = range(4)


@dataclass(frozen=True, eq=False)
class Share:
    """What a split makes of an operation.

    Parameters
    ----------
    count
        How many parts there are.
    time
        Shape (D, 3): time of a split node, of a part, and of the concatenate node, infinity where they may
        not run.
    size
        Memory of a part; the other nodes take none.
    divides_input, divides_output
        See :class:`partitioner.Dimension`.
    """

    count: int
    time: Floats
    size: float
    divides_input: bool
    divides_output: bool


@dataclass(frozen=True, eq=False)
class Draft:
    """Tasks of a graph some of whose operations are split.

    Parameters
    ----------
    tasks
        Numbered as before, with those of a split operation in its place: its split nodes, its parts, its
        concatenate node. `node` is the node of the unsplit graph that each stems from.
    role
        Shape (n,): ``WHOLE``, ``SPLIT``, ``PART`` or ``CONCATENATE``.
    number
        Shape (n,): of each among those of its role and node.
    """

    tasks: Tasks
    role: Ints
    number: Ints


def draft_of(tasks: Tasks) -> Draft:
    """The tasks with nothing split."""
    return Draft(tasks, np.full(tasks.n, WHOLE), np.zeros(tasks.n, dtype=np.int64))


def split_task(draft: Draft, v: int, share: Share) -> Draft:
    """Split task `v`.

    Each tensor that it reads goes to a split node, which sends a part, or all, to every sub-operation; these
    send parts of the output, or partial outputs, to the concatenate node, which makes the tensors that the
    task made. Without inputs, or readers, there are no such nodes. All of them are groups of their own.
    """
    tasks = draft.tasks
    block = Block.of(tasks, v, share.count)
    role = np.repeat([SPLIT, PART, CONCATENATE], block.counts)
    number = np.concatenate([np.arange(count) for count in block.counts])
    size = np.where(role == PART, share.size, 0.0)
    groups = tasks.group.max() + 1 + np.arange(block.length)
    before, before_tensor, after, after_tensor = rows_with(tasks, block)
    split = replace(
        tasks,
        node=_with(tasks.node, v, np.full(block.length, tasks.node[v])),
        time=np.ascontiguousarray(
            np.hstack((tasks.time[:, :v], share.time[:, role - SPLIT], tasks.time[:, v + 1 :]))
        ),
        size=_with(tasks.size, v, size),
        group=_with(tasks.group, v, groups),
        before=before,
        before_tensor=before_tensor,
        after=after,
        after_tensor=after_tensor,
        cost=np.concatenate((tasks.cost, _costs(tasks, block, share))),
    )
    return Draft(split, _with(draft.role, v, role), _with(draft.number, v, number))


def _costs(tasks: Tasks, block: Block, share: Share) -> Floats:
    """Of the new tensors: one of each split node, then one of each part if there is a concatenate node."""
    v = block.task
    made = np.unique(tasks.after_tensor[tasks.after.start[v] : tasks.after.start[v + 1]])
    inputs = tasks.cost[block.tensors] / (share.count if share.divides_input else 1)
    output = tasks.cost[made].sum() / (share.count if share.divides_output else 1)
    return np.concatenate((inputs, np.full(share.count if len(made) else 0, output)))


def _with(values: NDArray[T], v: int, block: NDArray[T]) -> NDArray[T]:
    """The values with those of a block in the place of one."""
    return np.concatenate((values[:v], block, values[v + 1 :]))
