"""The paper's PipeDream baseline (Section 6): a planner for paths, for which branchings are single nodes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.baselines.branchings import branchings
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp.blocks import merged, split_blocks
from partitioner.methods.dp.exact import solve_exact
from partitioner.methods.method import Outcome, Settings, no_split
from partitioner.problem.variants import ChainProblem


def solve_path(problem: ChainProblem, settings: Settings) -> Outcome:
    """Find the best chain that keeps every branching on one device: method ``pipedream_path``.

    The graph that :func:`partitioner.methods.baselines.branchings.branchings` contracts is solved by the
    exact dynamic program; the bound holds for every split. PipeDream's own cost model, its replication and
    its hierarchy of devices are not part of this baseline.
    """
    bound = relax(problem).bound
    if np.isinf(bound):
        return no_split(problem)
    block = branchings(problem.successors, problem.time.sum(axis=(0, 1)) == 0)
    found = solve_exact(merged(problem, block), replace(settings, incumbent=None))
    return Outcome(
        problem,
        None if found.parts is None else split_blocks(found.parts, block),
        found.value,
        min(bound, found.value),
        settings.ended(bound, found.value),
        notes=found.notes,
        statistics={"blocks": int(block.max()) + 1, **found.statistics},
    )
