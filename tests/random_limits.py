"""Random constraints on small workloads, one field at a time or all together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from partitioner import Constraints, Devices, Graph

FIELDS = (
    "pin", "forbid", "together", "nodes_per_stage", "layers_per_stage", "stages", "use_all_devices",
    "neighbours_only",
)  # fmt: skip


def with_layers(graph: Graph, rng: np.random.Generator) -> Graph:
    """The graph with up to four layers, to which most of its nodes belong."""
    layer = rng.integers(-1, 4, len(graph))
    return replace(graph, layer=layer, layer_labels=tuple(range(4)))


def random_constraints(
    rng: np.random.Generator, graph: Graph, devices: Devices, fields: Collection[str]
) -> Constraints:
    """Constraints in which the given fields say something; mild ones where there are many."""
    kinds = [kind.name for kind in devices.kinds if kind.count]
    few = len(fields) == 1
    all_ids = [graph.ids[i] for i in rng.permutation(len(graph)).tolist()]
    ids = all_ids[: int(rng.integers(1, 5 if few else 3))]
    targets = [*devices.names, *(kinds if rng.random() < 0.4 else [])]
    made: dict[str, Any] = {
        "pin": {node: str(rng.choice(targets)) for node in ids},
        "forbid": {node: [str(rng.choice(kinds))] for node in ids[: 1 + int(few)]},
        "together": [all_ids[:2]],
        "nodes_per_stage": _range(rng, 4, len(graph)),
        "layers_per_stage": _range(rng, 3, 4),
        "stages": int(rng.integers(1, 1 + min(len(graph), len(devices.names)))),
        "use_all_devices": True,
        "neighbours_only": True,
    }
    return Constraints(**{field: made[field] for field in fields})


def _range(rng: np.random.Generator, top: int, most: int) -> tuple[int | None, int | None]:
    least = int(rng.integers(1, top))
    return (
        least if rng.random() < 0.7 else None,
        int(rng.integers(least, max(least, most) + 1)) if rng.random() < 0.7 else None,
    )
