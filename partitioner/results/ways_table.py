"""The ways in which the nodes of each stage run, as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

OWN = "own figures"


def ways_lines(
    stages: Sequence[str], placement: Mapping[Any, str], alternatives: Mapping[Any, str]
) -> list[str]:
    """Return a line for each stage with a chosen alternative: how many nodes run in which way.

    Examples
    --------
    >>> ways_lines(["gpu0", "gpu1"], {0: "gpu0", 1: "gpu0", 2: "gpu1"}, {1: "recomputed"})
    ['stage 1 runs 1 node by own figures, 1 by recomputed']
    """
    counts: dict[str, Counter[str]] = {stage: Counter() for stage in stages}
    for node, device in placement.items():
        if device in counts:
            counts[device][alternatives.get(node, OWN)] += 1
    return [
        f"stage {number} runs {_words(counts[stage])}"
        for number, stage in enumerate(stages, 1)
        if set(counts[stage]) - {OWN}
    ]


def _words(counts: Counter[str]) -> str:
    (first, most), *others = counts.most_common()
    nodes = f"{most} node{'s' if most != 1 else ''} by {first}"
    return ", ".join([nodes, *(f"{count} by {name}" for name, count in others)])
