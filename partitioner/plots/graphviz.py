"""The layout of a graph by the program ``dot`` of Graphviz, if it is installed."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np

from partitioner.workload.graph import Floats, Graph

SECONDS = 10.0
ARGUMENTS = ("-Tplain", "-Grankdir=LR", "-Granksep=1", "-Gnodesep=1", "-Gsplines=false", "-Nshape=point")


def by_dot(graph: Graph) -> Floats | None:
    """Return positions of the nodes from left to right, about 1 apart, shape (n, 2).

    The result is None if the program is not installed, fails, or takes longer than `SECONDS`.
    """
    program = shutil.which("dot")
    if program is None:
        return None
    text = "\n".join(["digraph {", *map(str, range(len(graph))), *_edges(graph), "}"])
    try:
        done = subprocess.run(
            [program, *ARGUMENTS], input=text, capture_output=True, text=True, timeout=SECONDS, check=True
        )
        return _positions(done.stdout, len(graph))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def _edges(graph: Graph) -> list[str]:
    return [f"{source} -> {target}" for source, target in graph.edges.tolist()]


def _positions(answer: str, count: int) -> Floats:
    """Return the positions in lines such as ``node 7 1.5 0.25 ...``; raise if a node has no line."""
    place = np.full((count, 2), np.nan)
    for line in answer.splitlines():
        words = line.split()
        if words[:1] == ["node"]:
            place[int(words[1])] = float(words[2]), float(words[3])
    if not np.isfinite(place).all():
        raise ValueError("a node has no position")
    return place
