"""Reading of the replicas of stages from a plan file."""

from __future__ import annotations

from partitioner.formats.record import Record, mapping, texts


def read_replicas(top: Record) -> dict[str, tuple[str, ...]]:
    """Return the replicas of a plan: the further devices of each stage; empty if it has none."""
    given = top.take("replicas", mapping, {}, required=False)
    entries = Record(given, "replicas", top.flaws)
    return {name: tuple(entries.take(name, texts, [])) for name in given}
