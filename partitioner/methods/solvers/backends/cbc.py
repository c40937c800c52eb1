"""CBC, the program that comes with PuLP, called with files."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pulp.apis.coin_api import pulp_cbc_path

from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell, running
from partitioner.methods.solvers.program import Program
from partitioner.problem.arrays import Floats

_BOUND = re.compile(r"(?:best possible|Lower bound:) +(?P<bound>[-\d.e+]+)")
_STOPS = (("Optimal", "optimal"), ("Infeasible", "infeasible"), ("Integer infeasible", "infeasible"))


def solve_cbc(program: Program, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a program with CBC on one core; report the bounds that its log shows.

    A proof counts only if CBC ended before its time limit: stopped while it prepares the search, CBC 2.10
    calls programs infeasible that have solutions.

    Raises
    ------
    RuntimeError
        If CBC ends without an answer.
    """
    with TemporaryDirectory() as folder:
        model, solution = Path(folder, "model.mps"), Path(folder, "solution.txt")
        model.write_text("\n".join(mps_lines(program)), encoding="ascii")
        bound, began = -np.inf, time.perf_counter()
        command = [pulp_cbc_path, str(model), *_options(limits), "-solve", "-solution", str(solution)]
        with running(command) as cbc:
            for line in cbc.stdout or ():
                if match := _BOUND.search(line):
                    bound = max(bound, float(match["bound"]))
                    report(None, bound)
        if not solution.is_file():
            raise RuntimeError(f"CBC ended with code {cbc.returncode} and no solution file")
        late = limits.seconds is not None and time.perf_counter() - began >= limits.seconds
        return _answer(solution.read_text(encoding="ascii").splitlines(), program, bound, late)


def _options(limits: SolverLimits) -> list[str]:
    options = ["-ratio", repr(limits.gap), "-allow", "0", "-timeMode", "elapsed"]
    options += ["-randomCbcSeed", str(limits.seed % 2**30 + 1), "-printingOptions", "all"]
    options += [] if limits.effort is None else ["-maxNodes", str(limits.effort)]
    return options + ([] if limits.seconds is None else ["-sec", repr(limits.seconds)])


def _answer(lines: list[str], program: Program, bound: float, late: bool) -> Answer:
    words = lines[0].split(" - objective")[0].strip()
    said = next((stop for start, stop in _STOPS if words.startswith(start)), "time_limit")
    stop = "time_limit" if late else said
    if said == "infeasible" or "no integer solution" in words:
        return Answer(stop, None, np.inf if stop == "infeasible" else bound, words)
    values = np.zeros(program.columns)
    for line in lines[1:]:
        name, value = line.replace("**", "").split()[1:3]
        if name.startswith("x"):
            values[int(name[1:])] = float(value)
    objective = float(program.cost @ values)
    return Answer(stop, values, objective if stop == "optimal" and bound == -np.inf else bound, words)


def mps_lines(program: Program) -> Iterator[str]:
    """Yield the program in MPS format; a row with two different sides becomes two rows."""
    equal = program.row_lower == program.row_upper
    families = [
        _Rows("E", equal, program.row_upper),
        _Rows("L", ~equal & (program.row_upper < np.inf), program.row_upper),
        _Rows("G", ~equal & (program.row_lower > -np.inf), program.row_lower),
    ]
    yield from ("NAME          program", "ROWS", " N  cost")
    for rows in families:
        yield from (f" {rows.sense}  {rows.sense}{r}" for r in np.flatnonzero(rows.chosen).tolist())
    yield "COLUMNS"
    yield from _column_lines(program, families)
    yield "RHS"
    for rows in families:
        for r in np.flatnonzero(rows.chosen & (rows.side != 0)).tolist():
            yield _entry("RHS", f"{rows.sense}{r}", rows.side[r])
    yield "BOUNDS"
    for c, (low, high) in enumerate(zip(program.lower.tolist(), program.upper.tolist(), strict=True)):
        yield f" LO BND       x{c:<7}  {low: .15e}"
        yield f" UP BND       x{c:<7}  {high: .15e}" if high < np.inf else f" PL BND       x{c}"
    yield from ("ENDATA", "")


class _Rows(NamedTuple):
    """The rows of one sense, with their right sides."""

    sense: str
    chosen: NDArray[np.bool_]
    side: Floats


def _entry(name: str, row: str, value: float) -> str:
    return f"    {name:<8}  {row:<8}  {value: .15e}"


def _column_lines(program: Program, families: list[_Rows]) -> Iterator[str]:
    order = np.argsort(program.entry.items, kind="stable")
    row, factor = program.entry.owners()[order].tolist(), program.factor[order].tolist()
    start = np.cumsum([0, *np.bincount(program.entry.items, minlength=program.columns)]).tolist()
    names = [[f"{rows.sense}{r}" for rows in families if rows.chosen[r]] for r in range(program.rows)]
    for c in np.argsort(~program.integer, kind="stable").tolist():
        whole = bool(program.integer[c])
        if whole:
            yield f"    MARK{c:<5} 'MARKER'                 'INTORG'"
        if program.cost[c] or start[c] == start[c + 1]:  # a column without any entry is unknown to CBC
            yield _entry(f"x{c}", "cost", program.cost[c])
        for i in range(start[c], start[c + 1]):
            yield from (_entry(f"x{c}", name, factor[i]) for name in names[row[i]])
        if whole:
            yield f"    MARK{c:<5} 'MARKER'                 'INTEND'"
