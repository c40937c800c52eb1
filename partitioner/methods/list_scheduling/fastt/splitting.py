"""SplitOperation (FastT, Algorithm 2) on a draft: parts of a task, split nodes and a concatenate node."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.list_scheduling.fastt.block import rewritten, roles, spliced
from partitioner.methods.list_scheduling.fastt.draft import Draft, Share
from partitioner.methods.list_scheduling.task_arrays import arrays_of
from partitioner.problem.arrays import Rows


def split_task(draft: Draft, v: int, share: Share) -> Draft:
    """Return the draft with task `v` split.

    Each tensor that the task reads goes to a split node, which sends a part of it, or all, to every
    sub-operation. These send parts of the output, or partial outputs, to the concatenate node, which makes
    the tensors that the task made. Without inputs there are no split nodes, without consumers there is no
    concatenate node. Each new task is a group of its own.
    """
    tasks, arrays = draft.tasks, arrays_of(draft.tasks)
    block = roles(arrays, v, share.parts)
    new = rewritten(arrays, v, share, block)
    split = replace(
        tasks,
        node=spliced(tasks.node, v, np.full(len(block), tasks.node[v])),
        time=new.time,
        size=new.size,
        group=new.group,
        before=Rows(new.before_start, new.before),
        before_tensor=new.before_tensor,
        after=Rows(new.after_start, new.after),
        after_tensor=new.after_tensor,
        cost=new.cost,
    )
    number = np.arange(len(block)) - np.searchsorted(block, block)
    return Draft(split, spliced(draft.role, v, block), spliced(draft.number, v, number))
