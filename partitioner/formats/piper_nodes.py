"""The nodes and edges of Piper's inputs, for one tensor-parallel degree and one option of each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partitioner.base.errors import Flaw, shown
from partitioner.formats.record import Record, RuleBrokenError, amount, identifier, listing, mapping, text

EDGE_FIELDS = ("sourceId", "destId", "communicationCost")
OPTION_FIELDS = (
    *("id", "timePerSample", "parameterSize", "memoryUsageA", "memoryUsageB"),
    *("syncTimeFw", "syncTimeBw"),
)
Sizes = dict[tuple[int, int], float]


@dataclass(frozen=True)
class NodeOption:
    """What a node takes under an option: time, bytes of parameters, memory for each sample and once.

    `sync_in` and `sync_out` are bytes that are sent in addition, by producer and by consumer.
    """

    title: str
    time: float
    parameters: float
    each: float
    once: float
    sync_in: Mapping[int, float]
    sync_out: Mapping[int, float]


def read_nodes(records: Sequence[Any], degree: str, option: str, flaws: list[Flaw]) -> dict[int, NodeOption]:
    """Return the chosen option of every node by its id; add every flaw to `flaws`."""
    found: dict[int, NodeOption] = {}
    for place, data in enumerate(records):
        given = data.get("id") if isinstance(data, dict) else None
        where = f"node {shown(given)}" if isinstance(given, int) else f"nodes[{place}]"
        record = Record(data, where, flaws)
        node = record.take("id", _id, -1 - place)
        title = record.take("name", text, str(node), False)
        degrees = Record(record.take("TMPCs", mapping, {}), f"{where}: TMPCs", flaws)
        chosen = _chosen(degrees, degree, option) if degrees.data else None
        if node in found:
            record.note("id", shown(node), "is given to more than one node")
        if chosen is not None:
            found[node] = read_option(title, Record(chosen, f"{where}: TMPCs: {degree}", flaws))
        elif "TMPCs" in record.data and not degrees.data:
            degrees.note("", degree, "has no options for this degree; there are none")
    return found


def _chosen(degrees: Record, degree: str, option: str) -> dict[str, Any] | None:
    """Return the option of that id for a degree; None if there is none, which adds a flaw."""
    if degree not in degrees.data:
        degrees.note("", degree, f"has no options for this degree; there are {', '.join(degrees.data)}")
        return None
    listed = [one for one in degrees.take(degree, listing, []) if isinstance(one, dict)]
    for one in listed:
        if one.get("id") == option:
            return one
    known = ", ".join(shown(one.get("id")) for one in listed) or "none"
    degrees.note(degree, shown(option), f"is not the id of an option; there are {known}")
    return None


def read_option(title: str, record: Record) -> NodeOption:
    """Return an option of a node with that title."""
    record.others(OPTION_FIELDS)
    time, parameters, each, once = (record.take(field, amount, 0.0) for field in OPTION_FIELDS[1:5])
    sync_in, sync_out = (record.take(field, _by_id, {}, False) for field in OPTION_FIELDS[5:])
    return NodeOption(title, time, parameters, each, once, sync_in, sync_out)


def read_edges(records: Sequence[Any], nodes: Mapping[int, NodeOption], flaws: list[Flaw]) -> Sizes:
    """Return the bytes of every edge; an unknown end adds a flaw, unless nodes have some already."""
    found: Sizes = {}
    sound = not flaws
    for place, data in enumerate(records):
        record = Record(data, f"edges[{place}]", flaws)
        record.others(EDGE_FIELDS)
        ends = record.take("sourceId", _id, None), record.take("destId", _id, None)
        nbytes = record.take("communicationCost", amount, 0.0)
        source, target = ends
        if source is None or target is None:
            continue
        unknown = [end for end in ends if end not in nodes]
        if unknown and sound:
            record.note("", shown(unknown[0]), "is not the id of a node")
        elif ends in found or source == target:
            record.note("", f"{source} -> {target}", "must join two different nodes, and no others twice")
        elif not unknown:
            found[source, target] = nbytes
    return found


def _id(value: Any) -> int:
    if isinstance(value, str) or identifier(value) != value:
        raise RuleBrokenError("must be an integer")
    return int(value)


def _by_id(value: Any) -> dict[int, float]:
    found = {}
    for name, nbytes in mapping(value).items():
        if not (name.isascii() and name.isdigit() and len(name) < 19):
            raise RuleBrokenError("must be an object of bytes by the id of a node")
        found[int(name)] = amount(nbytes)
    return found
