"""Reading the package's source: its modules, what they import, and what their comparisons compare with."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import accumulate
from pathlib import Path

import networkx as nx

Trees = dict[str, ast.Module]
Literals = dict[str, dict[str, list[str]]]


def trees_below(root: Path) -> Trees:
    """Return every module below `root` by its dotted name, parsed."""
    found = {}
    for file in sorted(root.rglob("*.py")):
        name = ".".join(file.relative_to(root.parent).with_suffix("").parts)
        found[name.removesuffix(".__init__")] = ast.parse(file.read_text(encoding="utf-8"))
    return found


@cache
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """Return the imports and the comparisons anywhere in a module, found once a module."""
    kinds = (ast.Import, ast.ImportFrom, ast.Compare, ast.MatchValue)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def imports(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports anywhere in it, as module and as name in a module."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def packages_of(module: str) -> list[str]:
    """Return the packages that a module is in, outermost first.

    Examples
    --------
    >>> packages_of("a.b.c")
    ['a', 'a.b']
    """
    return list(accumulate(module.split(".")[:-1], "{}.{}".format))


def import_graph(trees: Trees) -> nx.DiGraph[str]:
    """Return an edge from every module to each module among `trees` that runs when it is imported.

    Importing ``a.b.c`` also runs ``a`` and ``a.b``, unless the importing module is inside them: they then
    run already.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(trees)
    for name, tree in trees.items():
        for wanted in imports(tree):
            module = wanted if wanted in trees else wanted.rpartition(".")[0]
            run = {module, *packages_of(module)} & trees.keys() - {name, *packages_of(name)}
            graph.add_edges_from((name, each) for each in run)
    return graph


def constants(trees: Trees) -> Literals:
    """Return the strings of every module-level constant: of literals, and of parts of other constants."""
    found: Literals = {name: {} for name in trees}
    for name, tree in (*trees.items(), *trees.items()):  # once more for what is made of imported constants
        for node in tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign):
                strings = strings_in(node.value, _imported(tree, found) | found[name])
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found[name] |= {target.id: strings for target in targets if isinstance(target, ast.Name)}
    return found


def strings_in(node: ast.AST | None, known: Mapping[str, list[str]]) -> list[str]:
    """Return the strings that a constant expression holds in their order, given those of constants by name.

    Examples
    --------
    >>> strings_in(ast.parse("(*NAMES, 'c')", mode="eval").body, {"NAMES": ["a", "b"]})
    ['a', 'b', 'c']
    >>> strings_in(ast.parse("NAMES[1]", mode="eval").body, {"NAMES": ["a", "b"]})
    ['b']
    """
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.Name):
        return known.get(node.id, [])
    if isinstance(node, ast.Subscript):
        found = strings_in(node.value, known)
        place = node.slice.value if isinstance(node.slice, ast.Constant) else None
        return found[place : place + 1] if isinstance(place, int) else found
    if isinstance(node, ast.Starred | ast.MatchValue):
        return strings_in(node.value, known)
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else []
    keys = node.keys if isinstance(node, ast.Dict) else []
    return [string for part in (*parts, *keys) for string in strings_in(part, known)]


def compared_with(trees: Trees) -> Iterator[tuple[str, ast.AST, set[str]]]:
    """Yield every comparison and every case of a ``match``: its module, itself, and the strings in it.

    Constants count for the strings that they hold, also those imported from other modules.
    """
    found = constants(trees)
    for name, tree in trees.items():
        known = _imported(tree, found) | found[name]
        for node in nodes_of(tree):
            if isinstance(node, ast.Compare):
                sides = (node.left, *node.comparators)
                yield name, node, {each for side in sides for each in strings_in(side, known)}
            elif isinstance(node, ast.MatchValue):
                yield name, node, set(strings_in(node, known))


def _imported(tree: ast.Module, found: Literals) -> dict[str, list[str]]:
    """Return the strings of the constants that a module imports, by the names that it gives them."""
    return {
        alias.asname or alias.name: found[node.module][alias.name]
        for node in nodes_of(tree)
        if isinstance(node, ast.ImportFrom) and node.module in found
        for alias in node.names
        if alias.name in found[node.module]
    }
