"""The package keeps its rules on structure, and each check here fails where its rule is broken."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

import partitioner
from partitioner.evaluation.shape import SHAPES
from partitioner.planning.objectives import OBJECTIVES
from partitioner.workload.in_flight import SCHEDULES
from tests.house import Trees, compared_with, import_graph, imports, strings_in, trees_below

ROOT = Path(partitioner.__file__).parent
MOST_ENTRIES = 18
MOST_LINES = 500  # of a file: one concept each, as long as the concept needs
FEWEST_LINES = 60  # of a file that a single other one imports
DEEPEST = 3  # folders below the package
ONE_A_FILE = ("partitioner.exports.", "partitioner.schedule.kinds.")  # listed in a registry, one a file
MOST_ARGUMENTS = 8  # of a kernel: arrays that belong together are a record
MOST_CODE, MOST_KERNEL_CODE = 60, 200  # lines of a function, and of a kernel, without comments and docstrings
ORDER = (
    ("base",),
    ("workload",),
    ("problem", "evaluation", "estimation"),
    ("schedule", "methods"),
    ("results",),
    ("formats", "exports"),
    ("planning",),
    ("analysis", "extensions", "integrations"),
    ("plots", "testing", "api"),
    ("cli",),
)
RANK = {name: rank for rank, names in enumerate(ORDER) for name in names}
COMPILED = ("base", "methods", "schedule")  # the only packages that may import numba
PLAIN = ("workload", "problem", "evaluation")  # these reach no import of numba by any way
METHODS = "partitioner.methods"
VALIDATED = {"partitioner.workload.graph", "partitioner.workload.graph_validation"}  # a circle with a reason
OBJECTIVES_IN = {"partitioner.planning.objectives", "partitioner.planning.solve"}
SPLITS_IN = {*OBJECTIVES_IN, "partitioner.problem.contract", "partitioner.evaluation.shape"}
NAMED = {"schedules": SCHEDULES, "splits": SHAPES, "objectives": tuple(OBJECTIVES)}


def circles(trees: Trees) -> list[set[str]]:
    """Return the groups of modules that import one another in a circle."""
    return [group for group in nx.strongly_connected_components(import_graph(trees)) if len(group) > 1]


def place(module: str) -> str:
    """Return the entry of the package that a module belongs to."""
    return f"{module}.".split(".")[1]


def upward(trees: Trees) -> list[tuple[str, str]]:
    """Return the imports that do not lead from a group of packages to an earlier one."""
    return [
        (here, there)
        for here, there in import_graph(trees).edges
        if {place(here), place(there)} <= RANK.keys()
        and place(here) != place(there)
        and RANK[place(there)] >= RANK[place(here)]
    ]


def importing_each_other(trees: Trees) -> set[tuple[str, str]]:
    """Return the pairs of folders of `methods/` with imports in both directions."""
    folder = {
        name: name.split(".")[2] for name in trees if name.startswith(f"{METHODS}.") and name.count(".") > 2
    }
    pairs = {(folder[a], folder[b]) for a, b in import_graph(trees).edges if a in folder and b in folder}
    return {(a, b) for a, b in pairs if a < b and (b, a) in pairs}


def importing_numba(trees: Trees) -> set[str]:
    """Return the modules that import numba themselves."""
    return {
        name
        for name, tree in trees.items()
        if any(f"{wanted}.".startswith("numba.") for wanted in imports(tree))
    }


def with_numba(trees: Trees) -> list[str]:
    """Return the modules that import numba although their package must not."""
    return [name for name in importing_numba(trees) if place(name) not in COMPILED]


def reaching_numba(trees: Trees) -> list[str]:
    """Return the modules of the plain packages whose imports lead to one that imports numba."""
    graph, compiled = import_graph(trees), importing_numba(trees)
    return [
        name for name in graph if place(name) in PLAIN and compiled & {name, *nx.descendants(graph, name)}
    ]


def repeated_classes(trees: Trees) -> list[str]:
    """Return the names of classes, public or not, that several modules of one place define.

    Between places a name is understood with its module's.
    """
    defined = Counter(
        (place(name), node.name)
        for name, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    )
    return [name for (_, name), times in defined.items() if times > 1]


def small_with_one_importer(trees: Trees, lines: Mapping[str, int]) -> set[str]:
    """Return the modules of fewer than 60 lines that exactly one other module imports."""
    importers: dict[str, set[str]] = {name: set() for name in trees}
    for name, tree in trees.items():
        for wanted in imports(tree):
            module = wanted if wanted in trees else wanted.rpartition(".")[0]
            if module in trees and module != name:
                importers[module].add(name)
    return {name for name, found in importers.items() if len(found) == 1 and lines[name] < FEWEST_LINES}


def compared(trees: Trees, names: set[str], allowed: set[str]) -> list[tuple[str, str]]:
    """Return the comparisons with some of the names, but not all, outside the modules allowed."""
    return [
        (module, ast.unparse(node))
        for module, node, strings in compared_with(trees)
        if module not in allowed and strings & names and not strings >= names
    ]


def objectives_compared(trees: Trees) -> list[tuple[str, str]]:
    """Return the comparisons with an objective's name where there must be none.

    A schedule may have the name of an objective, so comparisons of schedules do not count.
    """
    found = compared(trees, set(OBJECTIVES), OBJECTIVES_IN)
    return [
        (module, source) for module, source in found if "schedule" not in source and "period" not in source
    ]


def splits_compared(trees: Trees) -> list[tuple[str, str]]:
    """Return the comparisons with a split's name where there must be none."""
    return compared(trees, set(SHAPES), SPLITS_IN)


def repeated_lists(trees: Trees) -> list[str]:
    """Return what several constants list all names of, each in a literal of its own."""
    listed = Counter(
        what
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for what, names in NAMED.items()
        if set(names) <= set(strings_in(node.value, {}))
    )
    return [what for what, times in listed.items() if times > 1]


def functions(trees: Trees) -> Iterator[tuple[str, ast.FunctionDef, bool]]:
    """Yield the name of every function with its module's, the function, and whether it is a kernel."""
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                compiled = any("njit" in ast.unparse(each) for each in node.decorator_list)
                yield f"{name}.{node.name}", node, compiled


def kernels_of_many_arguments(trees: Trees) -> set[str]:
    """Return the kernels with more arguments than a reader keeps apart."""
    return {
        name for name, node, kernel in functions(trees) if kernel and len(node.args.args) > MOST_ARGUMENTS
    }


def too_long(trees: Trees) -> list[str]:
    """Return the functions with more lines of code than their kind may have."""
    return [
        name
        for name, node, kernel in functions(trees)
        if code_lines(node) > (MOST_KERNEL_CODE if kernel else MOST_CODE)
    ]


def code_lines(node: ast.FunctionDef) -> int:
    """Return the number of lines of a function's body in which code begins or ends."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    parts = [
        part for statement in body for part in ast.walk(statement) if isinstance(part, ast.expr | ast.stmt)
    ]
    return len({line for part in parts for line in (part.lineno, part.end_lineno)})


def without_docstring(trees: Trees) -> list[str]:
    """Return the modules that do not say what they hold."""
    return [name for name, tree in trees.items() if not ast.get_docstring(tree)]


@pytest.fixture(scope="module")
def trees() -> Trees:
    return trees_below(ROOT)


def test_few_entries_at_the_top() -> None:
    entries = [entry.name for entry in ROOT.iterdir() if not entry.name.startswith(("_", "py.typed"))]
    assert len(entries) <= MOST_ENTRIES
    assert set(RANK) == {Path(entry).stem for entry in entries}


def test_no_circle_of_imports(trees: Trees) -> None:
    assert circles(trees) in ([], [VALIDATED])


def test_folders_of_methods_import_in_one_direction(trees: Trees) -> None:
    """A bound does not import the search that uses it: of two folders at most one imports the other."""
    assert importing_each_other(trees) == set()


def test_kernels_take_few_arguments(trees: Trees) -> None:
    """What a kernel reads and writes is a few records with names, not a row of arrays."""
    assert kernels_of_many_arguments(trees) == set()


def test_every_package_has_a_docstring() -> None:
    """A folder with modules is a package, and its ``__init__`` says what it holds, as every module does."""
    folders = {file.parent for file in ROOT.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_no_file_is_longer_than_a_concept_needs() -> None:
    """A file holds one concept, in at most 500 lines."""
    lines = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in ROOT.rglob("*.py")}
    assert [file for file, length in lines.items() if length > MOST_LINES] == []


def test_no_folder_is_deep() -> None:
    folders = {file.parent.relative_to(ROOT) for file in ROOT.rglob("*.py")}
    assert [folder for folder in folders if len(folder.parts) > DEEPEST] == []


def test_small_files_have_several_importers(trees: Trees) -> None:
    """A file of a few lines that one other file imports is a section of that file."""
    lines = {}
    for name in trees:
        file = ROOT.parent.joinpath(*name.split(".")).with_suffix(".py")
        package = file.with_suffix("") / "__init__.py"
        lines[name] = len((file if file.exists() else package).read_text(encoding="utf-8").splitlines())
    small = {name for name in small_with_one_importer(trees, lines) if not name.startswith(ONE_A_FILE)}
    packages = {name for name in small if (ROOT.parent.joinpath(*name.split("."))).is_dir()}
    assert small - packages == set()


Check = Callable[[Trees], Any]
GRAPH, SOLVE = "partitioner.workload.graph", "partitioner.planning.solve"
BROKEN: tuple[tuple[Check, dict[str, str], object], ...] = (
    (
        circles,
        {
            GRAPH: "from partitioner.planning.solve import solve",
            SOLVE: "from partitioner.workload import graph",
        },
        [{GRAPH, SOLVE}],
    ),
    (  # importing a module of a package runs the package, which imports another module of it
        circles,
        {
            "partitioner.a": "from partitioner.a.x import X",
            "partitioner.a.x": "from partitioner.b import B",
            "partitioner.b": "from partitioner.a.y import Y",
            "partitioner.a.y": "",
        },
        [{"partitioner.a", "partitioner.a.x", "partitioner.b"}],
    ),
    (upward, {GRAPH: "import partitioner.planning.solve", SOLVE: ""}, [(GRAPH, SOLVE)]),
    (
        importing_each_other,
        {
            f"{METHODS}.dp.lattice": f"from {METHODS}.bounds.cuts import holds",
            f"{METHODS}.bounds.cuts": f"from {METHODS}.dp.levels import x\nimport {METHODS}.method",
            f"{METHODS}.dp.levels": "",
            f"{METHODS}.method": f"from {METHODS}.dp.levels import x",
        },
        {("bounds", "dp")},
    ),
    (with_numba, {GRAPH: "from numba.core import event"}, [GRAPH]),
    (
        reaching_numba,
        {
            GRAPH: "def f():\n    from partitioner.base.compiled import njit",
            "partitioner.base.compiled": "import numba",
        },
        [GRAPH],
    ),
    (repeated_classes, {GRAPH: "class _Walk: ...", f"{GRAPH}s": "class _Walk: ..."}, ["_Walk"]),
    (repeated_classes, {GRAPH: "class _Walk: ...", SOLVE: "class _Walk: ..."}, []),
    (objectives_compared, {GRAPH: "a = objective == 'batch'"}, [(GRAPH, "objective == 'batch'")]),
    (objectives_compared, {GRAPH: "a = o not in ('batch', None)"}, [(GRAPH, "o not in ('batch', None)")]),
    (objectives_compared, {GRAPH: "match o:\n    case 'latency': ..."}, [(GRAPH, "'latency'")]),
    (objectives_compared, {GRAPH: "A = ('gpipe', 'batch')\nb = o in A"}, [(GRAPH, "o in A")]),
    (objectives_compared, {SOLVE: "a = objective == 'batch'", GRAPH: "a = schedule == 'gpipe'"}, []),
    (splits_compared, {GRAPH: "a = split != 'chain'"}, [(GRAPH, "split != 'chain'")]),
    (
        splits_compared,
        {
            "partitioner.evaluation.shape": "SHAPES = ('chain', 'convex', 'free')\na = split == 'chain'",
            GRAPH: "from partitioner.evaluation.shape import SHAPES\nA = SHAPES[0]\ns in SHAPES or s == A",
        },
        [(GRAPH, "s == A")],
    ),
    (repeated_lists, {GRAPH: f"A = {SHAPES}", SOLVE: f"B = {[*SHAPES, 'other']}"}, ["splits"]),
    (repeated_lists, {GRAPH: f"A = {SCHEDULES}\nB = (*A, 'other')", SOLVE: "C = ('gpipe', '1f1b')"}, []),
    (
        kernels_of_many_arguments,
        {
            GRAPH: "@njit(cache=True)\ndef f(a, b, c, d, e, f, g, h, i): ...\n"
            "@njit(cache=True)\ndef g(a, b, c, d, e, f, g, h): ...\n"
            "def h(a, b, c, d, e, f, g, h, i): ..."
        },
        {f"{GRAPH}.f"},
    ),
    (
        too_long,
        {
            GRAPH: "def f():\n" + "    a = 1\n" * 61,
            SOLVE: "@njit()\ndef f():\n"
            + "    a = 1\n" * 200
            + "def g():\n"
            + "    # note\n    a = 1\n" * 60,
        },
        [f"{GRAPH}.f"],
    ),
    (without_docstring, {GRAPH: "a = 1", SOLVE: '"""Solve."""'}, [GRAPH]),
)


WITH_EXCEPTIONS = (
    circles,
    importing_each_other,
    kernels_of_many_arguments,
)  # each has a test of its own above


@pytest.mark.parametrize(
    "check", dict.fromkeys(check for check, _, _ in BROKEN if check not in WITH_EXCEPTIONS)
)
def test_the_package_keeps_the_rule(check: Check, trees: Trees) -> None:
    assert check(trees) == []


@pytest.mark.parametrize(("check", "sources", "expected"), BROKEN)
def test_a_check_fails_where_its_rule_is_broken(
    check: Check, sources: dict[str, str], expected: object
) -> None:
    assert check({name: ast.parse(source) for name, source in sources.items()}) == expected
