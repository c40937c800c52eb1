"""From stages of supernodes to a placement of the user's nodes, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partitioner.devices import Devices
from partitioner.graph import Graph, NodeId
from partitioner.methods.method import Outcome, Stage, stage_numbers
from partitioner.preprocess.problem import Ints, Problem


def expand(graph: Graph, devices: Devices, outcome: Outcome) -> tuple[dict[NodeId, str], tuple[str, ...]]:
    """Give every stage a device and every node the device of its supernode.

    Returns
    -------
    placement
        Device name for every node id.
    stages
        The devices in the order of the stages; empty if the outcome has none.
    """
    stages = outcome.stages or ()
    used: Counter[int] = Counter()
    names = []
    for part in stages:
        names.append(devices.kinds[part.kind].device(used[part.kind]))
        used[part.kind] += 1
    if not names:
        return {}, ()
    stage_of_node = stage_numbers(stages, outcome.problem.n)[outcome.problem.member].tolist()
    return {node: names[s] for node, s in zip(graph.ids, stage_of_node, strict=True)}, tuple(names)


def stages_of(
    problem: Problem, graph: Graph, devices: Devices, placement: Mapping[Any, str], order: Sequence[str]
) -> list[Stage] | None:
    """The stages of a user's chain, as a start for a method; None if they are none any more.

    A supernode goes where its last member that takes time is. Free nodes, which go with it, may have
    been elsewhere; what results is checked.

    Parameters
    ----------
    problem, graph, devices
        The contracted graph and what it was made of.
    placement, order
        A feasible chain and its devices in order.
    """
    number = {name: place for place, name in enumerate(order)}
    takes_time = graph.time.any(axis=0)
    stage = np.zeros(problem.n, dtype=np.int64)
    for chosen in (~takes_time, takes_time):
        for i in np.flatnonzero(chosen).tolist():
            stage[problem.member[i]] = number[placement[graph.ids[i]]]
    kinds = [found[0] for name in order if (found := devices.kind_of(name))]
    stages = [Stage(kind, np.flatnonzero(stage == s)) for s, kind in enumerate(kinds)]
    stages = [part for part in stages if len(part.nodes)]
    return stages if _is_chain(problem, stage, stages) else None


def _is_chain(problem: Problem, stage: Ints, stages: Sequence[Stage]) -> bool:
    ordered = bool((stage[problem.successors.owners()] <= stage[problem.successors.items]).all())
    fits = all(
        problem.size[part.nodes].sum() <= problem.memory[part.kind]
        and problem.allowed[part.kind, part.nodes].all()
        for part in stages
    )
    return ordered and fits
