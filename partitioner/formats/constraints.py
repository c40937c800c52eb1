"""Reading of constraints from a JSON file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import path_name, read_json
from partitioner.formats.record import (
    Record,
    RuleBrokenError,
    flag,
    identifier,
    listing,
    mapping,
    text,
    texts,
    whole,
)
from partitioner.workload.constraints import FORWARD_ONLY, NONE, TRAINING_ONLY, Constraints
from partitioner.workload.graph import Graph


def load_constraints(path: str | os.PathLike[str], graph: Graph) -> Constraints:
    """Return the constraints in a file.

    The file holds an object with the fields of :class:`partitioner.Constraints`, each of which may be left
    out. Names in a JSON object are texts; a name that equals the id of a node as a text means that node.

    Parameters
    ----------
    path
        The file.
    graph
        The graph whose nodes the constraints select.

    Raises
    ------
    WorkloadError
        Naming the file and every field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_constraints(Record(read_json(path), "file", flaws), graph)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return found


def read_constraints(top: Record, graph: Graph) -> Constraints:
    """Return the constraints that a JSON object holds; no constraints if flaws are added."""
    before = len(top.flaws)
    known = [entry.name for entry in fields(Constraints)]
    for field in top.others(known):
        top.note(field, "", f"is not a field; these are {', '.join(known)}")
    given = {name: top.take(name, READERS[name], None, False) for name in known if name in top.data}
    try:
        if len(top.flaws) == before:
            return Constraints(**_by_id(given, {str(node): node for node in graph.ids}))
    except WorkloadError as error:
        top.flaws += error.flaws
    return NONE


def _by_id(given: dict[str, Any], ids: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with each pattern that equals a node's id as a text replaced by that id."""
    found = dict(given)
    for name in ("pin", "forbid"):
        if name in given:
            found[name] = {ids.get(pattern, pattern): target for pattern, target in given[name].items()}
    return found


def _targets(value: Any) -> dict[str, str]:
    return {pattern: text(target) for pattern, target in mapping(value).items()}


def _kinds(value: Any) -> dict[str, list[str]]:
    return {pattern: [text(kind) for kind in listing(kinds)] for pattern, kinds in mapping(value).items()}


def _groups(value: Any) -> list[list[int | str]]:
    return [[identifier(pattern) for pattern in listing(group)] for group in listing(value)]


def _range(value: Any) -> tuple[int | None, int | None]:
    if not isinstance(value, list) or len(value) != 2:
        raise RuleBrokenError("must be a list of two numbers, the least and the most, null for no limit")
    least, most = (None if end is None else whole(end) for end in value)
    return least, most


def _neighbours(value: Any) -> bool | str:
    return value if value in (FORWARD_ONLY, TRAINING_ONLY) else flag(value)


READERS: dict[str, Callable[[Any], Any]] = {
    "pin": _targets,
    "forbid": _kinds,
    "together": _groups,
    "nodes_per_stage": _range,
    "layers_per_stage": _range,
    "stages": whole,
    "use_all_devices": flag,
    "neighbours_only": _neighbours,
    "whole": texts,
    "own_memory": flag,
    "one_kind": flag,
    "no_replicas": flag,
    "in_order": flag,
    "equal_replicas": flag,
}
