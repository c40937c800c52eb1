"""METIS (Karypis and Kumar, 1998), called through pymetis in a process of its own."""

from __future__ import annotations

import sys
import tempfile
from importlib.metadata import version as version_of
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable
from partitioner.methods.baselines.graph_partitioning.method import Partitioner, Weighted, run
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Ints

PROGRAM = Path(__file__).with_name("metis_program.py")
REMEDY = remedy("metis")
PER_MILLE = 1000
LARGEST = 2**31 - 1  # seeds are from 1 to this, as C treats seed 0 as 1


def partition(graph: Weighted, parts: int, settings: Settings) -> Ints:
    """Return the part of every vertex, by METIS's k-way partitioning, shape (n,).

    Raises
    ------
    BackendUnavailable
        If pymetis is not installed.
    Ended
        If it does not end in time, or fails.
    """
    version()
    per_mille = max(1, round(PER_MILLE * settings.placing.imbalance))
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "graph.npz"), Path(folder, "parts.npy")
        np.savez(source, **graph._asdict())
        files = [str(PROGRAM), str(source), str(target)]
        numbers = [parts, 1 + settings.seed % LARGEST, per_mille]
        run("METIS", [sys.executable, "-P", *files, *map(str, numbers)], settings)
        return np.asarray(np.load(target), dtype=np.int64)


def version() -> str:
    """Return the package's name and version.

    Raises
    ------
    BackendUnavailable
        If pymetis is not installed.
    """
    try:
        here = find_spec("pymetis") is not None
    except ValueError:  # sys.modules holds None in its place
        here = False
    if not here:
        raise BackendUnavailable(f"method metis needs pymetis: {REMEDY}")
    return f"pymetis {version_of('pymetis')}"


solve_metis = Partitioner(partition, version)
