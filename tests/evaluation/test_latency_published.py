"""The evaluator gives published splits their published latency (paper, Table 4)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from partitioner import Graph, Workload, evaluate, load, load_placement


def greedy(workload: Workload) -> dict[Any, str]:
    """Fill one accelerator after another in a topological order (paper, Appendix F).

    Of the supernodes that may come next, the one comes first whose last node comes last in the file.
    """
    graph, kind = workload.graph, workload.devices.kinds[0]
    assert kind.memory is not None
    parts, order = topological_parts(graph)
    placement: dict[Any, str] = {}
    device, free = 0, kind.memory
    for part in order:
        size = sum(float(graph.size[node]) for node in parts[part])
        if size > free:
            device, free = device + 1, kind.memory
        free -= size
        name = kind.device(device) if device < kind.count else "cpu0"
        placement |= {graph.ids[node]: name for node in parts[part]}
    return placement


def topological_parts(graph: Graph) -> tuple[dict[int, list[int]], list[int]]:
    """The nodes of colour classes and strongly connected components, and an order of these."""
    color = [c if c >= 0 else -1 - i for i, c in enumerate(graph.color.tolist())]
    classes: nx.DiGraph[int] = nx.DiGraph()
    classes.add_nodes_from(color)
    classes.add_edges_from((color[u], color[v]) for u, v in graph.edges.tolist())
    components = nx.condensation(classes)
    parts: dict[int, list[int]] = {part: [] for part in components}
    for node, c in enumerate(color):
        parts[components.graph["mapping"][c]].append(node)
    return parts, list(nx.lexicographical_topological_sort(components, key=lambda part: -parts[part][-1]))


@pytest.mark.parametrize(
    ("name", "printed"),
    [
        ("bert3", 416.204),
        ("bert6", 494.135),
        ("resnet50_operator", 839.536),
        ("bert24", 100.219),
        ("gnmt", 268.501),
    ],
)
def test_greedy_splits_have_the_published_latency(
    published: Path, reference: Callable[[str], Any], name: str, printed: float
) -> None:
    """The paper's column Greedy, and what its program printed; other orders give other splits."""
    workload = load(published / "latency" / f"{name}_inference.json")
    found = evaluate(workload.graph, workload.devices, greedy(workload), "latency")
    row = next(row for row in reference("table4")["rows"] if row["workload"] == f"{name}_inference")
    assert found.feasible
    assert abs(found.value - printed) < 6e-4 and abs(found.value - row["greedy"]) < 6e-3


@pytest.mark.parametrize("name", ["bert24", "gnmt"])
def test_expert_splits_have_the_published_latency(
    published: Path, reference: Callable[[str], Any], name: str
) -> None:
    """They break limits: BERT-24's uses six accelerators where there are five, GNMT's more memory."""
    workload = load(published / "latency" / f"{name}_inference.json")
    path = published / "experts" / f"{name}_inference.json"
    placement = load_placement(path, workload.graph, workload.devices)
    found = evaluate(workload.graph, workload.devices, placement, "latency")
    row = next(row for row in reference("table4")["rows"] if row["workload"] == f"{name}_inference")
    assert abs(found.value - row["expert"]) < 6e-3
    assert len(found.violations) == 1 and "accelerator5" in found.violations[0]
