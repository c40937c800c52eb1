"""A compiled trial is DPOS on the tasks split; the bound that rules trials out is one."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import Dimension, Transfers
from partitioner.methods.list_scheduling.fastt.dpos import dpos
from partitioner.methods.list_scheduling.fastt.draft import WHOLE, draft_of
from partitioner.methods.list_scheduling.fastt.floor import least_makespan
from partitioner.methods.list_scheduling.fastt.os_dpos import Trials
from partitioner.methods.list_scheduling.fastt.splitting import split_task
from partitioner.methods.list_scheduling.timing import makespan
from partitioner.planning.splitting.ordered import in_order
from partitioner.planning.splitting.rewritten import Splitter
from partitioner.planning.splitting.start import tasks_at
from partitioner.workload.topological import topological
from tests.random_workloads import uneven_workload

ALONG = [Dimension("batch"), Dimension("inner", divides_output=False, divides_parameters=True)]


@pytest.mark.slow  # the kernel compiles for 40 s
@pytest.mark.parametrize(("first", "count"), [(0, 75), (75, 225)])
def test_as_dpos_and_never_below_the_bound(first: int, count: int) -> None:
    """On graphs with kinds, classes, memory limits and contention, a second split behind a first one."""
    placed, ruled_out = 0, 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        graph, devices = uneven_workload(rng, 9, 4)
        graph = in_order(graph, topological(graph.edges, len(graph)))
        splitter = Splitter(graph, devices, 0.25, 0.5)
        draft = draft_of(tasks_at(graph, devices, Transfers(contention=seed % 2 == 0)))
        for node in rng.permutation(len(graph))[:3].tolist():
            v = int(np.flatnonzero((draft.tasks.node == node) & (draft.role == WHOLE))[0])
            share = splitter.share(node, ALONG[int(rng.integers(2))], int(rng.integers(2, 5)))
            trials = Trials(draft, seed % 3 == 0, draft.tasks.links[0])
            split = split_task(draft, v, share)
            found = dpos(split.tasks, trials.reserve)
            value = np.inf if found is None else makespan(split.tasks, found.device, found.order)
            least = least_makespan(trials.arrays, trials.lines, *trials.around, v, share)
            if found is not None:
                assert trials.value(v, share, np.inf) == value
                assert least <= value * (1 + 1e-12)
                assert trials.value(v, share, value * (1 + 1e-9) + 1e-9) == value
                assert trials.value(v, share, least) == np.inf
                ruled_out += least > 0.99 * value
                placed += 1
            draft = split
    assert placed > count
    assert ruled_out > count / 10
