"""Layers are checked when they are made."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner.base.errors import WorkloadError
from partitioner.methods.baselines.pipedream.layers import Layers

SOUND: dict[str, Any] = {
    "time": [1.0, 2.0],
    "activation": [3.0, 4.0],
    "parameters": [0.0, 0.0],
    "edges": [(0, 1)],
}


def test_sound_columns_are_kept() -> None:
    layers = Layers(**SOUND)
    assert layers.time.tolist() == [1.0, 2.0] and layers.edges.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"time": []}, "at least one layer"),
        ({"activation": [3.0]}, r"activation = shape \(1,\): must have shape \(2,\)"),
        ({"parameters": [0.0, -1.0]}, "layer 1: parameters = -1.0"),
        ({"time": [float("inf"), 1.0]}, "layer 0: time = inf"),
        ({"edges": [(0, 2)]}, r"edges = \[0, 2\]: must be from 0 to 1"),
        ({"edges": [(0, 1), (1, 0)]}, "have a cycle"),
    ],
)
def test_broken_columns_are_named(change: dict[str, Any], rule: str) -> None:
    with pytest.raises(WorkloadError, match=rule):
        Layers(**(SOUND | change))
