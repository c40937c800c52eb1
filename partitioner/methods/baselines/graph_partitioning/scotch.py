"""Scotch (Pellegrini, 2009), called as a program."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from partitioner.base.errors import BackendUnavailable
from partitioner.methods.baselines.graph_partitioning.method import Ended, Partitioner, Weighted, run
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Ints

PROGRAMS = ("scotch_gpart", "gpart")
PATIENCE = 10.0
REMEDY = 'apt-get install scotch, or put its program "gpart" on the PATH'


def partition(graph: Weighted, parts: int, settings: Settings) -> Ints:
    """Return the part of every vertex, by ``gpart``, shape (n,).

    The program always uses the same random numbers, so a seed other than 0 renumbers the vertices instead.

    Raises
    ------
    BackendUnavailable
        If the program is not on the PATH.
    Ended
        If it does not end in time, or fails.
    """
    chosen = program()
    order = np.arange(graph.n)
    if settings.seed:
        order = np.random.default_rng(settings.seed).permutation(graph.n)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "graph.grf"), Path(folder, "parts.map")
        source.write_text(as_grf(graph.renumbered(order)), encoding="ascii")
        files = [str(parts), str(source), str(target)]
        options = [f"-b{settings.placing.imbalance:.9f}", *_repeatable(chosen)]
        run("Scotch", [chosen, *files, *options], settings)
        found = read_map(target.read_text(encoding="ascii"), graph.n)
    return found[np.argsort(order)]


def program() -> str:
    """Return the path of the program.

    Raises
    ------
    BackendUnavailable
        If it is not on the PATH.
    """
    for name in PROGRAMS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise BackendUnavailable(f"method scotch needs the program {' or '.join(PROGRAMS)}: {REMEDY}")


def version() -> str:
    """Return the program's name and version."""
    return _version(program())


@cache
def _version(path: str) -> str:
    number = re.search(r"version (\S+)", _said(path, "-V"))
    return f"Scotch {number[1]}" if number else "Scotch"


@cache
def _repeatable(path: str) -> list[str]:
    """Return the option that makes results repeatable; versions before 7, without threads, need none."""
    return ["-Cdf"] if "-C<opt>" in _said(path, "-h") else []


def _said(path: str, option: str) -> str:
    """Return what the program prints for an option."""
    done = subprocess.run([path, option], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.stdout + done.stderr


def as_grf(graph: Weighted) -> str:
    """Return the graph in Scotch's text format, version 0, with weights of vertices and edges.

    Examples
    --------
    >>> print(as_grf(Weighted(*map(np.array, ([3, 4], [0, 1, 2], [1, 0], [7, 7])))), end="")
    0
    2 2
    0 011
    3 1 7 1
    4 1 7 0
    """
    lines = ["0", f"{graph.n} {len(graph.neighbour)}", "0 011"]
    pairs = np.column_stack((graph.cost, graph.neighbour)).tolist()
    for weight, first, last in zip(
        graph.weight.tolist(), graph.start[:-1].tolist(), graph.start[1:].tolist(), strict=True
    ):
        lines.append(
            " ".join(map(str, (weight, last - first, *(x for pair in pairs[first:last] for x in pair))))
        )
    return "\n".join(lines) + "\n"


def read_map(text: str, n: int) -> Ints:
    """Return the part of every vertex, shape (n,).

    Raises
    ------
    Ended
        If a vertex is missing.

    Examples
    --------
    >>> read_map("2 0 1 1 0", 2).tolist()
    [1, 0]
    """
    numbers = np.array(text.split(), dtype=np.int64)
    part = np.full(n, -1, dtype=np.int64)
    if len(numbers) == 2 * n + 1:
        part[numbers[1::2]] = numbers[2::2]
    if (part < 0).any():
        raise Ended("heuristic", "Scotch left vertices without a part")
    return part


solve_scotch = Partitioner(partition, version)
