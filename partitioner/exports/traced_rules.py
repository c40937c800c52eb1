"""The rules of torch's front end, which traces a model and cuts its program before given modules."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from partitioner.base.errors import Flaw
from partitioner.evaluation.placed import Placed
from partitioner.exports.module_stages import Stages
from partitioner.exports.stage_rules import between_stages, exchanged
from partitioner.workload.graph import Graph
from partitioner.workload.modules import Modules, interrupted, module_starts


def skips(graph: Graph, found: Stages) -> bool:
    """Whether a tensor is sent past a stage."""
    edges = exchanged(graph, found)
    return bool((found.of[edges[:, 1]] - found.of[edges[:, 0]] > 1).any())


def skips_of_inputs(graph: Graph, found: Stages) -> bool:
    """Whether a tensor that the inputs of the model determine is sent past a stage."""
    edges = graph.edges[between_stages(graph, found)]
    far = bool((np.abs(found.of[edges[:, 1]] - found.of[edges[:, 0]]) > 1).any())
    return far and not skips(graph, found)


def traced_flaws(placed: Placed, modules: Modules, found: Stages) -> Iterator[Flaw]:
    """Yield a flaw for each module and device that the front end does not take."""
    yield from _out_of_order(placed.graph, modules, found)
    yield from _cut_twice(placed.graph, modules, found)
    if placed.graph.backward.any():
        yield from _sent_to_several(placed.graph, modules, found)
    if skips(placed.graph, found) and len(found.ranks) < len(found.stages):
        for name in found.ranks:
            own = [i for i, stage in enumerate(found.stages) if stage.device == name]
            if len(own) > 1:
                rule = "where tensors skip stages a device has one stage"
                yield Flaw(f"device {name}", "", f"has stages {', '.join(map(str, own))}", rule)


def _out_of_order(graph: Graph, modules: Modules, found: Stages) -> Iterator[Flaw]:
    """Yield a flaw for each module that the program begins before a module of an earlier stage."""
    for i, j in pairwise(module_starts(graph).tolist()):
        if found.of[i] > found.of[j]:
            one, other = (modules.names[modules.of[node]] for node in (i, j))
            where = f"is in stage {found.of[i]}, {other} after it in stage {found.of[j]}"
            yield Flaw(f"module {one}", "", where, "stages must have consecutive modules of the model")


def _cut_twice(graph: Graph, modules: Modules, found: Stages) -> Iterator[Flaw]:
    """Yield a flaw for each module that is the first of a stage and begins again later."""
    again = interrupted(graph)
    for i, j in pairwise(module_starts(graph).tolist()):
        if found.of[i] != found.of[j] and again[modules.of[j]]:
            rule = "is called again after other modules, so that it must not be the first of a stage"
            yield Flaw(f"module {modules.names[modules.of[j]]}", "", "", rule)


def _sent_to_several(graph: Graph, modules: Modules, found: Stages) -> Iterator[Flaw]:
    """Yield a flaw for each module that sends tensors to several stages."""
    edges = exchanged(graph, found)
    pairs = np.unique(np.stack((modules.of[edges[:, 0]], found.of[edges[:, 1]]), axis=1), axis=0)
    for module in np.flatnonzero(np.bincount(pairs[:, 0]) > 1).tolist():
        stages = pairs[pairs[:, 0] == module, 1].tolist()
        where = f"sends tensors to stages {', '.join(map(str, stages))}"
        rule = "of a training graph must send its tensors to one stage, which alone can return their gradient"
        yield Flaw(f"module {modules.names[module]}", "", where, rule)
