"""The package keeps the rules on its structure that ARCHITECTURE.md states, and each check fails where its rule is broken."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import pytest

import partitioner

ROOT = Path(partitioner.__file__).parent
MOST_ENTRIES = 17  # 13 packages, errors and files, and what other packages import: extensions and testing
ORDER = (
    ("errors",),
    ("files", "base"),
    ("workload",),
    ("problem", "evaluation", "estimation"),
    ("schedule", "methods"),
    ("results",),
    ("formats", "exports", "plots"),
    ("planning",),
    ("extensions",),
    ("testing",),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
COMPILED = ("base", "methods", "schedule")  # the only packages that may import numba
VALIDATED = {"partitioner.workload.graph", "partitioner.workload.graph_validation"}  # a circle with a reason

Trees = dict[str, ast.Module]


def trees_below(root: Path) -> Trees:
    """Every module below `root` by its dotted name, parsed."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        name = ".".join(file.relative_to(root.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = ast.parse(file.read_text(encoding="utf-8"))
    return found


def imports(tree: ast.Module) -> Iterator[str]:
    """What a module imports anywhere in it, as module and as name in a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def import_graph(trees: Trees) -> nx.DiGraph[str]:
    """An edge from every module to each module among `trees` that it imports."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(trees)
    for name, tree in trees.items():
        for wanted in imports(tree):
            module = wanted if wanted in trees else wanted.rpartition(".")[0]
            if module in trees and module != name:
                graph.add_edge(name, module)
    return graph


def circles(trees: Trees) -> list[set[str]]:
    """The modules that import one another in a circle."""
    return [group for group in nx.strongly_connected_components(import_graph(trees)) if len(group) > 1]


def place(module: str) -> str:
    """The entry of the package that a module belongs to."""
    return f"{module}.".split(".")[1]


def upward(trees: Trees) -> list[tuple[str, str]]:
    """The imports that do not lead from a group of packages to an earlier one."""
    return [
        (here, there)
        for here, there in import_graph(trees).edges
        if {place(here), place(there)} <= RANK.keys()
        and place(here) != place(there)
        and RANK[place(there)] >= RANK[place(here)]
    ]


def with_numba(trees: Trees) -> list[str]:
    """The modules that import numba although their package must not."""
    return [
        name
        for name, tree in trees.items()
        if place(name) not in COMPILED and any(f"{wanted}.".startswith("numba.") for wanted in imports(tree))
    ]


def repeated_classes(trees: Trees) -> list[str]:
    """The names of public classes that several modules define."""
    defined = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return [name for name, times in defined.items() if times > 1]


@pytest.fixture(scope="module")
def trees() -> Trees:
    return trees_below(ROOT)


def test_few_entries_at_the_top() -> None:
    entries = [entry.name for entry in ROOT.iterdir() if not entry.name.startswith(("_", "py.typed"))]
    assert len(entries) <= MOST_ENTRIES
    assert set(RANK) == {Path(entry).stem for entry in entries}


def test_no_circle_of_imports(trees: Trees) -> None:
    assert circles(trees) in ([], [VALIDATED])


def test_no_import_upwards(trees: Trees) -> None:
    assert upward(trees) == []


def test_numba_only_where_kernels_are(trees: Trees) -> None:
    assert with_numba(trees) == []


def test_a_class_name_exists_once(trees: Trees) -> None:
    assert repeated_classes(trees) == []


BROKEN = {
    "partitioner.workload.graph": "import numba\nfrom partitioner.planning.solve import solve\nclass Search: ...",
    "partitioner.planning.solve": "from partitioner.workload import graph\nclass Search: ...",
}


def test_every_check_fails_where_its_rule_is_broken() -> None:
    broken = {name: ast.parse(source) for name, source in BROKEN.items()}
    assert circles(broken) == [set(BROKEN)]
    assert upward(broken) == [("partitioner.workload.graph", "partitioner.planning.solve")]
    assert with_numba(broken) == ["partitioner.workload.graph"]
    assert repeated_classes(broken) == ["Search"]
