"""Profiles in files, by the captured graph, its shapes and types, the machine and the clock."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from partitioner.base.errors import Flaw, PartitionerError, WorkloadError, shown
from partitioner.base.files import check_writable, path_name, read_json, write_text
from partitioner.integrations.torch.graphs.values import tensors_of

FORMAT = "partitioner operator profile 1"
REMEDY = "delete the file to measure again"


@dataclass(frozen=True)
class OperatorProfile:
    """What was measured of a captured graph.

    Parameters
    ----------
    operators
        For each operator, by its name in the graph: its time in ms, the most bytes that it has allocated at
        one time, and the bytes that it leaves allocated.
    rounds
        The rounds that were timed.
    stable
        Whether the times were stable at the end.
    foreign
        The part of all cores that other programs used meanwhile, for a clock that runs on while they do; None
        for other clocks.
    """

    operators: dict[str, tuple[float, float, float]]
    rounds: int
    stable: bool
    foreign: float | None = None


def profile_file(folder: str | os.PathLike[str], graph: Any, device: Any, manner: str) -> Path:
    """Return the file for the profile of a graph on this machine; the folder is made if there is none.

    Raises
    ------
    PartitionerError
        If the folder cannot be made or written.
    """
    place = Path(path_name(folder))
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PartitionerError(f"cache: {place}: cannot be made: {error.strerror}") from error
    key = hashlib.sha256(f"{_graph_text(graph)}\n{machine_text(device, manner)}".encode()).hexdigest()
    file = place / f"torch-profile-{key[:32]}.json"
    check_writable(file)
    return file


def machine_text(device: Any, manner: str) -> str:
    """Return what times depend on besides the graph: the machine, torch, and the manner of measuring."""
    kind = torch.device(device)
    name = torch.cuda.get_device_name(kind) if kind.type == "cuda" else _processor()
    threads = torch.get_num_threads()
    return "\n".join(
        (
            platform.node(),
            platform.machine(),
            name,
            torch.__version__,
            f"{threads} threads",
            str(kind),
            manner,
        )
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), platform.processor())


def _graph_text(graph: Any) -> str:
    """Return the operators of a graph with the shapes, layouts and types of what they return."""
    lines = []
    for node in graph.nodes:
        made = [(tuple(one.shape), one.stride(), str(one.dtype)) for one in tensors_of(node)]
        lines.append(f"{node.format_node()} {made}")
    return "\n".join(lines)


def save_profile(path: Path, profile: OperatorProfile) -> None:
    """Write a profile as a whole."""
    write_text(path, json.dumps({"format": FORMAT, **asdict(profile)}, indent=1) + "\n")


def load_profile(path: Path, names: tuple[str, ...]) -> OperatorProfile | None:
    """Return the profile of the operators of these names; None if there is no such file.

    Raises
    ------
    WorkloadError
        If the file does not hold such a profile.
    """
    if not path.exists():
        return None
    content = read_json(path)
    fields = content if isinstance(content, dict) else {}
    operators = fields.get("operators")
    if fields.get("format") != FORMAT or not isinstance(operators, dict) or operators.keys() != {*names}:
        raise _broken(path, "operators", f"must be a profile of {len(names)} operators")
    for name, values in operators.items():
        if not (isinstance(values, list) and len(values) == 3 and all(map(_is_amount, values))):
            raise _broken(path, name, f"= {shown(values)}: must be 3 numbers of at least 0")
    rounds, stable, foreign = fields.get("rounds"), fields.get("stable"), fields.get("foreign")
    if type(rounds) is not int or rounds < 1 or not isinstance(stable, bool):
        raise _broken(path, "rounds and stable", "must be an integer of at least 1, and true or false")
    if foreign is not None and not _is_amount(foreign):
        raise _broken(path, "foreign", f"= {shown(foreign)}: must be a number of at least 0, or null")
    return OperatorProfile({name: tuple(operators[name]) for name in names}, rounds, stable, foreign)


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and 0 <= float(str(value)) < math.inf


def _broken(path: Path, field: str, rule: str) -> WorkloadError:
    return WorkloadError([Flaw(field, "", "", f"{rule}; {REMEDY}")], str(path))
