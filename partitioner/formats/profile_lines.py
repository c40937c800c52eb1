"""The lines of a profile: nodes with their fields, and edges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from partitioner.base.errors import Flaw, shown
from partitioner.formats.record import Record, RuleBrokenError
from partitioner.workload.device_validation import LARGEST, SMALLEST, number_rule

FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
STAGE = "stage_id"
KNOWN = (*FIELDS, STAGE)
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NODE_RULE = "must be `id -- description -- fields`, or a tab and an edge `id -- id`"


@dataclass
class Lines:
    """The content of the lines read so far, and their flaws.

    Parameters
    ----------
    ids, descriptions, numbers, stage
        One entry for each node; the numbers are those of `FIELDS`.
    edges
        The ids of producer and consumer of each edge, and its line.
    known
        The set of the ids.
    flaws
        The broken rules so far.
    nameless
        Whether the id of some node could not be read.
    """

    ids: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    numbers: list[tuple[float, ...]] = field(default_factory=list)
    stage: list[int] = field(default_factory=list)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    flaws: list[Flaw] = field(default_factory=list)
    nameless: bool = False


def read_node(line: str, where: str, lines: Lines) -> None:
    """Add the node in a line, and the flaws of the line."""
    parts = line.split(" -- ")
    stage = parts.pop() if len(parts) > 3 and parts[-1].startswith(f"{STAGE}=") else None
    if len(parts) < 3 or not parts[0]:
        lines.flaws.append(Flaw(where, "", shown(line), NODE_RULE))
        lines.nameless = True
        return
    if parts[0] in lines.known:
        lines.flaws.append(Flaw(where, "id", shown(parts[0]), "is given to more than one node"))
    entries = parts[-1].split(", ") + ([stage] if stage else [])
    record = Record(_entries(entries, where, lines.flaws), where, lines.flaws)
    lines.ids.append(parts[0])
    lines.known.add(parts[0])
    lines.descriptions.append(" -- ".join(parts[1:-1]))
    takes = (_decimal, _decimal, _total, _decimal)
    lines.numbers.append(
        tuple(record.take(name, take, 0.0) for name, take in zip(FIELDS, takes, strict=True))
    )
    lines.stage.append(record.take(STAGE, _whole, -1, required=False))
    for name in sorted(record.data.keys() - set(KNOWN)):
        record.note(name, shown(record.data[name]), f"is not a field; known are {', '.join(KNOWN)}")


def _entries(entries: Sequence[str], where: str, flaws: list[Flaw]) -> dict[str, str]:
    """Return the values of entries ``name=value`` by name."""
    found: dict[str, str] = {}
    for entry in entries:
        name, sign, value = entry.partition("=")
        if not sign:
            flaws.append(Flaw(where, "", shown(entry), "must be `name=value`"))
        elif name in found:
            flaws.append(Flaw(where, name, shown(value), "is given twice"))
        else:
            found[name] = value
    return found


def read_edge(line: str, where: str, lines: Lines) -> None:
    """Add the edge in a line, or the flaw of the line."""
    ends = line.split(" -- ")
    if len(ends) != 2:
        lines.flaws.append(Flaw(where, "", shown(line), "must be an edge `id -- id` after its tab"))
    elif ends[0] == ends[1]:
        lines.flaws.append(Flaw(where, "edge", shown(line), "must join two different nodes"))
    else:
        lines.edges.append((ends[0], ends[1], where))


def _decimal(text: str) -> float:
    if not DECIMAL.fullmatch(text):
        raise RuleBrokenError("must be a number")
    return _in_range(float(text))


def _total(text: str) -> float:
    """Return a number, or the sum of a list of numbers."""
    if not (text.startswith("[") and text.endswith("]")):
        return _decimal(text)
    try:
        return _in_range(sum(_decimal(item.strip()) for item in text[1:-1].split(";")))
    except RuleBrokenError as broken:
        raise RuleBrokenError(f"{broken}; so must each number of a list [a; b]") from None


def _in_range(value: float) -> float:
    if value == 0 or SMALLEST <= value <= LARGEST:
        return value
    raise RuleBrokenError(number_rule(value))


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise RuleBrokenError("must be a whole number of at least 0")
    return int(text)
