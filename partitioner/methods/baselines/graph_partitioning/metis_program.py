"""The program of the process in which METIS runs, from file to file; it imports nothing of this package."""

from __future__ import annotations

import sys

import numpy as np


def main(source: str, target: str, parts: str, seed: str, per_mille: str) -> None:
    """Read the graph from file `source` and write the part of every vertex to file `target`."""
    import pymetis

    graph = np.load(source)
    _, part = pymetis.part_graph(
        int(parts),
        xadj=graph["start"],
        adjncy=graph["neighbour"],
        vweights=graph["weight"],
        eweights=graph["cost"],
        recursive=False,
        options=pymetis.Options(seed=int(seed), ufactor=int(per_mille)),
    )
    np.save(target, np.array(part, dtype=np.int64))


if __name__ == "__main__":
    main(*sys.argv[1:])
