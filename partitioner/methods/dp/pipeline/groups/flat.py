"""The problem in which every link is as fast as the fastest one, which bounds plans on any devices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from partitioner.methods.dp.pipeline.groups.tables import unknown_factors
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.variants import PipelineProblem


def on_fastest_links(problem: PipelineProblem) -> PipelineProblem:
    """Return the problem without groups or levels, in which no pipeline costs more, whatever its devices."""
    fastest = float(unknown_factors(problem)[0].min()) if len(problem.pipeline.link) else 1.0
    return _without_groups(problem, fastest)


def _without_groups(problem: PipelineProblem, fastest: float) -> PipelineProblem:
    light, coarser = problem.relaxed_pipeline, problem.coarser
    return replace(
        problem,
        nets=problem.nets._replace(cost=problem.nets.cost * fastest),
        pipeline=_linked(problem.pipeline, fastest),
        relaxed_pipeline=light and _linked(light, fastest),
        coarser=None if coarser is None else _without_groups(coarser, fastest),
    )


def _linked(pipeline: Pipeline, fastest: float) -> Pipeline:
    none = np.zeros((0, 0))
    return replace(
        pipeline,
        held=none.astype(np.int64),
        link=none,
        group=pipeline.group[:0],
        slowdown=pipeline.slowdown[:0],
        bandwidth=pipeline.bandwidth / fastest,
    )
