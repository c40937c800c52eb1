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
    ['stage 1 runs 1 node by own figures, 1 node recomputed']
    """
    counts: dict[str, Counter[str]] = {stage: Counter() for stage in stages}
    for node, device in placement.items():
        if device in counts:
            counts[device][alternatives.get(node, OWN)] += 1
    return [
        f"stage {number} runs {', '.join(_words(*entry) for entry in counts[stage].most_common())}"
        for number, stage in enumerate(stages, 1)
        if set(counts[stage]) - {OWN}
    ]


def _words(name: str, count: int) -> str:
    nodes = f"{count} node{'s' if count != 1 else ''}"
    return f"{nodes} by {name}" if name == OWN else f"{nodes} {name}"
