"""Phases of serving: several times for every node and edge, such as prefill and decode, and their weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.workload.device_validation import LARGEST, is_amount
from partitioner.workload.extras import Extras
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.graph_validation import edge_name, node_name

PHASES = "phases"  # the field of a node with its times, and of an edge with its cost, in every phase
WEIGHTS = "phaseWeights"  # the field of a graph with the weights that its times and costs are made with
AMOUNT = f"must be a number from 0 to {LARGEST:g}"
Amounts = Mapping[str, Any]


def weigh_phases(graph: Graph, weights: Mapping[str, float]) -> Graph:
    """Return the graph whose times and costs are weighted sums over phases; it can be weighed again.

    With the weight w_p of phase p, node v takes sum_p w_p t_pvk on kind k, and edge e costs sum_p w_p c_pe.
    A request of one prompt and 256 generated tokens, for example, is
    ``{"prefill": 1, "decode": 256}`` where the decode times are those of one token.

    Parameters
    ----------
    graph
        A graph whose nodes have the field ``phases`` in `graph.extras`: for every phase the time on every
        kind. Edges have the field, too: for every phase the cost; an edge of cost 0 may leave it out.
    weights
        The weight of every phase that counts, at least 0; one of them above 0.

    Raises
    ------
    OptionError
        If the weights are no such mapping.
    WorkloadError
        Naming every node and edge that lacks a phase, or whose field breaks a rule.

    Examples
    --------
    >>> phases = {"prefill": {"gpu": 8.0}, "decode": {"gpu": 0.5}}
    >>> graph = Graph.from_arrays({"gpu": [0.0]}, extras=Extras(nodes=[{"phases": phases}]))
    >>> weigh_phases(graph, {"prefill": 1, "decode": 10}).time.tolist()
    [[13.0]]
    """
    require_type("graph", graph, Graph)
    _check_weights(weights)
    flaws = phase_flaws(graph) or list(_missing(graph, weights))
    if flaws:
        raise WorkloadError(flaws)
    time, cost = np.zeros(graph.time.shape), np.zeros(len(graph.cost))
    for phase, weight in weights.items():
        time += weight * _times(graph, phase)
        cost += weight * np.array([_phases(extra).get(phase, 0.0) for extra in _of_edges(graph)])
    top = {**graph.extras.top, WEIGHTS: dict(weights)}
    extras = Extras(top, graph.extras.nodes, graph.extras.edges)
    return replace(graph, time=time, cost=cost, extras=extras)


def phase_flaws(graph: Graph) -> list[Flaw]:
    """Return every rule that a field ``phases`` of a node or an edge breaks."""
    flaws = []
    for i, extra in enumerate(graph.extras.nodes):
        flaws += _flaws(extra, lambda place=i: node_name(graph, place), graph.kinds)  # type: ignore[misc]
    for i, extra in enumerate(graph.extras.edges):
        flaws += _flaws(extra, lambda place=i: edge_name(graph, place), None)  # type: ignore[misc]
    return flaws


def _flaws(extra: Amounts, where: Callable[[], str], kinds: tuple[str, ...] | None) -> list[Flaw]:
    """Return what is wrong with the phases of a node on some kinds, or of an edge (`kinds` is None)."""
    if PHASES not in extra:
        return []
    if not isinstance(extra[PHASES], Mapping):
        return [
            Flaw(where(), PHASES, shown(extra[PHASES]), "must be an object with an entry for every phase")
        ]
    flaws = []
    for phase, given in extra[PHASES].items():
        field = f"{PHASES}[{phase}]"
        if kinds is None:
            flaws += [] if is_amount(given) else [Flaw(where(), field, shown(given), AMOUNT)]
        elif not isinstance(given, Mapping) or set(given) != set(kinds):
            rule = f"must have the times on {', '.join(kinds)}"
            flaws.append(Flaw(where(), field, shown(given), rule))
        else:
            wrong = {kind: time for kind, time in given.items() if not is_amount(time)}
            flaws += [Flaw(where(), f"{field}[{k}]", shown(time), AMOUNT) for k, time in wrong.items()]
    return flaws


def _check_weights(weights: object) -> None:
    rule = "must be a mapping from phases to numbers of at least 0, one of them above 0"
    sound = isinstance(weights, Mapping) and all(
        isinstance(phase, str) and is_amount(weight) and math.isfinite(weight)
        for phase, weight in weights.items()
    )
    if not sound or not any(weights.values()):  # type: ignore[attr-defined]
        raise OptionError(f"phases = {shown(weights)}: {rule}")


def _missing(graph: Graph, weights: Mapping[str, float]) -> Iterator[Flaw]:
    """Yield a flaw for every node, and every edge whose cost is not 0, that lacks a phase."""
    for phase in weights:
        rule = f"must have phase {shown(phase)}, because it has a weight"
        for i, extra in enumerate(_of_nodes(graph)):
            if phase not in _phases(extra):
                yield Flaw(node_name(graph, i), PHASES, shown(list(_phases(extra))), rule)
        for i, extra in enumerate(_of_edges(graph)):
            if phase not in _phases(extra) and graph.cost[i]:
                yield Flaw(edge_name(graph, i), PHASES, shown(list(_phases(extra))), rule)


def _times(graph: Graph, phase: str) -> Floats:
    """Return the times in a phase, shape (kinds, n)."""
    given = [_phases(extra)[phase] for extra in _of_nodes(graph)]
    return np.array([[times[kind] for times in given] for kind in graph.kinds], dtype=np.float64)


def _phases(extra: Amounts) -> Amounts:
    found: Amounts = extra.get(PHASES, {})
    return found


def _of_nodes(graph: Graph) -> list[Amounts]:
    return list(graph.extras.nodes) or [{}] * len(graph)


def _of_edges(graph: Graph) -> list[Amounts]:
    return list(graph.extras.edges) or [{}] * len(graph.cost)
