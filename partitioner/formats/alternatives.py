"""Reading of the alternatives of nodes in workload files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from partitioner.base.errors import shown
from partitioner.formats.record import Record, listing, mapping, number, text, whole
from partitioner.workload.alternatives import AMOUNTS, Alternative
from partitioner.workload.graph import NodeId

FIELDS = ("name", "degree", "times", *AMOUNTS, "inputs", "outputs")


def read_alternatives(node: Record) -> tuple[Alternative, ...]:
    """Return the alternatives of a node; inputs and outputs are by the text of an id."""
    given = node.take("alternatives", listing, [], required=False)
    return tuple(
        _read(Record(data, f"{node.where}: alternatives[{place}]", node.flaws))
        for place, data in enumerate(given)
    )


def _read(record: Record) -> Alternative:
    for field in record.others(FIELDS):
        record.note(field, "", f"is not a field of an alternative; these are {', '.join(FIELDS)}")
    name = record.take("name", text, "")
    if record.data.get("name") == "":
        record.note("name", shown(name), "must not be empty")
    return Alternative(
        name=name,
        times=_amounts(record, "times", required=True),
        degree=record.take("degree", whole, 1, False),
        inputs=_amounts(record, "inputs"),
        outputs=_amounts(record, "outputs"),
        **{part: record.take(part, number, 0.0, False) for part in AMOUNTS},
    )


def _amounts(record: Record, field: str, required: bool = False) -> dict[Any, float]:
    given = record.take(field, mapping, {}, required)
    entries = Record(given, f"{record.where}: {field}", record.flaws)
    return {name: entries.take(name, number, 0.0) for name in given}


def by_id(
    found: Sequence[Sequence[Alternative]], ids: Sequence[NodeId]
) -> dict[NodeId, tuple[Alternative, ...]]:
    """Return the alternatives by node, with the ids of nodes in place of their texts; other texts stay."""
    known = {str(node): node for node in ids}

    def resolved(times: Mapping[Any, float]) -> dict[Any, float]:
        return {known.get(text, text): time for text, time in times.items()}

    return {
        node: tuple(replace(way, inputs=resolved(way.inputs), outputs=resolved(way.outputs)) for way in ways)
        for node, ways in zip(ids, found, strict=True)
    }
