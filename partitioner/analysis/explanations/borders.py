"""What moving nodes off the bottleneck would change, and what refuses it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from partitioner.analysis.explanations.bottleneck import Bottleneck, decisive
from partitioner.analysis.explanations.memory import largest_excess
from partitioner.analysis.explanations.question import PlanQuestion
from partitioner.analysis.explanations.units import units_of
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import SHAPES
from partitioner.workload.devices import MEMORY_TOLERANCE
from partitioner.workload.graph import Ints, NodeId

MOST_UNITS = 12  # that are moved together to a neighbour
MOST_DEVICES = 8  # that nodes are moved to where there are no neighbours
BETTER, MEMORY, RULE, SLOWER = "better", "memory", "rule", "slower"
RANKS = (BETTER, MEMORY, RULE, SLOWER)


@dataclass(frozen=True)
class BorderMove:
    """Nodes of the bottleneck that could be on another device.

    Parameters
    ----------
    source
        The bottleneck.
    device, stage
        The device that would receive them, and the number from 1 of its stage; 0 if the split has none.
    nodes, names
        The nodes; those of a colour class move together.
    value
        The value of the plan after the move, whether it may be made or not.
    verdict
        ``"better"``: the move may be made and improves the value; ``"memory"``: it would be better, but a
        device would hold too much; ``"rule"``: it would be better, but another rule would be broken;
        ``"slower"``: it would not be better.
    slowest, load
        The device that determines the value after the move, and its load.
    fullest, held, limit
        For verdict ``"memory"`` the device, what it would hold, and its memory; else empty and 0.
    broken
        For verdict ``"rule"`` the rule that would be broken; else empty.
    """

    source: str
    device: str
    stage: int
    nodes: tuple[NodeId, ...]
    names: tuple[str, ...]
    value: float
    verdict: str
    slowest: str
    load: float
    fullest: str = ""
    held: float = 0.0
    limit: float = 0.0
    broken: str = ""

    @property
    def excess(self) -> float:
        """By how much the fullest device would exceed its memory."""
        return self.held - self.limit


def moves_of(
    question: PlanQuestion, evaluation: Evaluation, bottleneck: Bottleneck
) -> tuple[BorderMove, ...]:
    """Return for each neighbour of the bottleneck the move that says most about the value.

    In a pipeline the first nodes of the stage can move to the stage before, the last ones to the stage after,
    in one topological order; up to 12 groups of nodes at once are tried. Otherwise each of the slowest nodes
    can move to each of the least loaded devices in use. A move that may be made and helps comes first, then
    one that memory refuses, then one that another rule refuses, then the one with the best value.
    """
    if question.simulated or len(bottleneck.stages) > 1:
        return ()
    found: dict[str, list[BorderMove]] = {}
    for device, nodes in _candidates(question, evaluation, bottleneck):
        found.setdefault(device, []).append(_judged(question, evaluation, bottleneck.device, device, nodes))

    def rank(move: BorderMove) -> tuple[int, float]:
        return RANKS.index(move.verdict), -move.value if question.maximised else move.value

    best = [min(moves, key=rank) for moves in found.values()]
    return tuple(best) if question.order(evaluation) or not best else (min(best, key=rank),)


def _candidates(
    question: PlanQuestion, evaluation: Evaluation, bottleneck: Bottleneck
) -> Iterator[tuple[str, Ints]]:
    """Yield devices with the nodes that they could receive, never all nodes of the bottleneck."""
    order = question.order(evaluation)
    units = units_of(question.graph, question.on(bottleneck.device))
    if order:
        place, count = order.index(bottleneck.device), min(MOST_UNITS, len(units) - 1)
        for size in range(1, count + 1):
            if place:
                yield order[place - 1], np.concatenate(units[:size])
            if place + 1 < len(order):
                yield order[place + 1], np.concatenate(units[-size:])
        return
    costly = {question.graph.position[node] for node in bottleneck.decisive}
    used = [load for load in evaluation.loads if load.nodes and load.name != bottleneck.device]
    for load in sorted(used, key=lambda load: load.load)[:MOST_DEVICES]:
        yield from ((load.name, unit) for unit in units if len(units) > 1 and costly & set(unit.tolist()))


def _judged(
    question: PlanQuestion, evaluation: Evaluation, source: str, device: str, nodes: Ints
) -> BorderMove:
    """Return a move with its value, and what refuses it."""
    graph, order = question.graph, question.order(evaluation)
    ids = tuple(graph.ids[i] for i in nodes.tolist())
    moved = question.evaluation({**question.plan.placement, **dict.fromkeys(ids, device)})
    better = question.better(moved.value, evaluation.value, MEMORY_TOLERANCE)
    excess = largest_excess(moved.loads, question.devices) if better else None
    broken = _broken(question, evaluation, moved) if better and excess is None else ""
    decides = decisive(moved)
    return BorderMove(
        source=source,
        device=device,
        stage=order.index(device) + 1 if device in order else 0,
        nodes=ids,
        names=tuple(graph.names[i] for i in nodes.tolist()),
        value=moved.value,
        verdict=SLOWER if not better else MEMORY if excess else RULE if broken else BETTER,
        slowest=decides.name,
        load=decides.load,
        fullest=excess.device if excess else "",
        held=excess.held if excess else 0.0,
        limit=excess.limit if excess else 0.0,
        broken=broken,
    )


def _broken(question: PlanQuestion, evaluation: Evaluation, moved: Evaluation) -> str:
    """Return a rule that a moved placement breaks, the shape of its split included; empty without one."""
    if moved.violations:
        return moved.violations[0]
    had = max(SHAPES.index(question.split(evaluation)), SHAPES.index(evaluation.shape.name))
    torn = SHAPES.index(moved.shape.name) > had
    return f"the split is {moved.shape.name}, not {SHAPES[had]}" if torn else ""
