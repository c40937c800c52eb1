"""The digest of a graph."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partitioner.workload.graph import Graph


def digest_of(graph: Graph) -> str:
    """Return the SHA-256 of all data of a graph that a solver reads, the same on every machine."""
    parts = [repr((graph.kinds, graph.ids)).encode()]
    arrays = (graph.time, graph.allowed, graph.size, graph.backward, graph.color, graph.layer)
    parts += [a.tobytes() for a in (*arrays, graph.edges, graph.cost)]
    parts += [graph.parts.tobytes()] if graph.parts.any() else []
    parts += [b"cache", graph.cache.tobytes()] if graph.cache.any() else []
    parts += [graph.alternatives.text.encode()] if graph.alternatives else []
    return hashlib.sha256(b"|".join(parts)).hexdigest()
