"""Algorithm 2 of FastT on dictionaries: graphs rewritten node by node, every trial a call of solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partitioner import Devices, Dimension, Graph, Plan, solve
from partitioner.workload.array_input import MEMORY_PARTS

Row = dict[str, Any]
COPIED = ("parameters", "gradients", "optimizer")


def split(graph: Graph, node: Any, dimension: Dimension, n: int) -> Graph:
    """SplitOperation for one node; the new ones come where it was."""
    edges = [
        (graph.ids[u], graph.ids[v], c)
        for (u, v), c in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True)
    ]
    prefix = f"{node}/{dimension.name}"
    into = list(dict.fromkeys((u, c) for u, v, c in edges if v == node))
    out = [c for u, _, c in edges if u == node]
    parts = [f"{prefix}/{i}of{n}" for i in range(n)]
    splits = {pair: f"{prefix}/split{j}" for j, pair in enumerate(into)}
    joined = [f"{prefix}/concatenate"] if out else []
    kept = [(u, splits[u, c], c) if v == node else (joined[0] if u == node else u, v, c) for u, v, c in edges]
    given = [
        (name, part, c / n if dimension.divides_input else c)
        for part in parts
        for (_, c), name in splits.items()
    ]
    made = (out[0] if len(set(out)) == 1 else sum(out)) / (n if dimension.divides_output else 1) if out else 0
    taken = [(part, name, made) for part in parts for name in joined]
    block = dict.fromkeys(splits.values(), _idle) | dict.fromkeys(parts, _part)
    block |= dict.fromkeys(joined, _idle)
    rows = []
    for i, name in enumerate(graph.ids):
        row = _row(graph, i)
        if name == node:
            told = bool(graph.parts.any())
            rows += [
                make({**row, "id": new, "color": None}, dimension, n, told) for new, make in block.items()
            ]
        else:
            rows.append(row)
    return _graph(graph.kinds, rows, [*dict.fromkeys(kept), *given, *taken])


def _row(graph: Graph, i: int) -> Row:
    return {
        "id": graph.ids[i],
        "time": graph.time[:, i],
        "allowed": graph.allowed[:, i],
        "size": graph.size[i],
        "backward": bool(graph.backward[i]),
        "color": graph.color_labels[graph.color[i]] if graph.color[i] >= 0 else None,
        **dict(zip(MEMORY_PARTS, graph.parts[:, i].tolist(), strict=True)),
    }


def _idle(row: Row, dimension: Dimension, n: int, told: bool) -> Row:
    """A node that takes nothing and runs everywhere."""
    nothing = dict.fromkeys(("size", *MEMORY_PARTS), 0.0)
    return {**row, **nothing, "time": 0 * row["time"], "allowed": row["allowed"] | True}


def _part(row: Row, dimension: Dimension, n: int, told: bool) -> Row:
    """One of n parts of a node."""
    by = n if dimension.divides_parameters else 1
    memory = {name: row[name] / (by if name in COPIED else n) for name in MEMORY_PARTS}
    return {**row, **memory, "time": row["time"] / n, "size": row["size"] / (n if told else by)}


def _graph(kinds: Sequence[str], rows: Sequence[Row], edges: Sequence[tuple[Any, Any, float]]) -> Graph:
    columns: Any = {name: [row[name] for row in rows] for name in ("size", "backward", *MEMORY_PARTS)}
    return Graph.from_arrays(
        {kind: [row["time"][k] for row in rows] for k, kind in enumerate(kinds)},
        [(u, v) for u, v, _ in edges],
        [c for _, _, c in edges],
        ids=[row["id"] for row in rows],
        allowed={kind: [bool(row["allowed"][k]) for row in rows] for k, kind in enumerate(kinds)},
        color=[row["color"] for row in rows],
        **columns,
    )


def search(
    graph: Graph, devices: Devices, dimensions: Mapping[Any, Sequence[Dimension]], most: int
) -> tuple[float, list[tuple[Any, str, int]]]:
    """Algorithm 2, operations by the critical path that the evaluator reports."""
    plan = _plan(graph, devices)
    assert plan.schedule is not None
    runs = [plan.schedule.entries[i] for i in plan.schedule.critical_path]
    value, splits = plan.value, []
    for run in sorted(runs, key=lambda run: -run.compute):
        tried = {}
        for dimension in dimensions.get(run.nodes[0], ()):
            for n in range(2, most + 1):
                rewritten = split(graph, run.nodes[0], dimension, n)
                tried[dimension.name, n] = _plan(rewritten, devices).value, rewritten
        if not tried:
            continue
        name, n = min(tried, key=lambda choice: tried[choice][0])
        if not tried[name, n][0] < value:
            break
        value, graph = tried[name, n]
        splits.append((run.nodes[0], name, n))
    return value, splits


def _plan(graph: Graph, devices: Devices) -> Plan:
    return solve(graph, devices, "makespan", method="dpos")


def random_model(rng: np.random.Generator, n: int) -> tuple[Graph, dict[Any, list[Dimension]]]:
    """A graph in which no two times are equal, and dimensions for most of its nodes."""
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.4]
    along = [Dimension("batch"), Dimension("channel", divides_input=False, divides_parameters=True)]
    graph = Graph.from_arrays(
        {"accelerator": rng.exponential(3.0, n)},
        edges,
        rng.exponential(float(rng.choice([0.1, 0.5])), len(edges)),
        parameters=rng.random(n) * rng.choice([0.0, 1.0]),
        size=rng.random(n),
    )
    return graph, {i: along[: int(rng.integers(1, 3))] for i in range(n) if rng.random() < 0.8}
