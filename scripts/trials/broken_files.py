"""Files of every format that the program reads, and ways to break them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import partitioner as pt
from partitioner.analysis.sweeps.journal import row_line
from partitioner.analysis.sweeps.row import SweepRow
from partitioner.exports.torch_schedule import torch_schedule
from partitioner.schedule import simulate
from tests.formats.test_fuzz import ODD, mutant
from tests.formats.test_metis import document as metis_document
from tests.instances import document, write

WORKLOAD = {**document(), "maxCPUs": 2}
DEVICES = {
    "kinds": [
        {"name": "accelerator", "count": 2, "memory": 2000.0, "bandwidth": 10.0},
        {"name": "cpu", "count": 2, "pays_communication": False, "time_factor": 2.0},
    ],
    "communication": "overlapped",
    "levels": [{"name": "server", "devices": {"accelerator": 1, "cpu": 1}, "slowdown": 2.0}],
    "transfers": {"slope": 0.5, "intercept": 0.25, "contention": True},
}
CONSTRAINTS = {
    "pin": {"1": "accelerator0", "layer 4": "accelerator"},
    "forbid": {"2": ["cpu"]},
    "together": [[3, "layer 2"]],
    "nodes_per_stage": [1, None],
    "layers_per_stage": [None, 5],
    "stages": 2,
    "neighbours_only": True,
}
SPLIT = {"fpgas": [{"nodes": [1, 6, 3]}, {"nodes": [2, 5, 4]}], "cpus": [{"nodes": []}]}
ROWS = (
    SweepRow(
        "1f",
        "a",
        "2 x 8G",
        2,
        "throughput",
        "optimal",
        {"gap": 0.1, "replicas": 2},
        1.5,
        1.25,
        plan="1f.json",
    ),
    SweepRow("2f", "=1+1", "4 x 8G", 4, "latency", "failed", reason="no room"),
)
PROFILE = "\n".join(
    [
        "node1 -- Input0 -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=38.0, "
        "parameter_size=0.000",
        "node2 -- Linear -- forward_compute_time=6.610, backward_compute_time=8.712, activation_size=82.0, "
        "parameter_size=71.000",
        "node3 -- ReLU -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=[8.0; 4.0], "
        "parameter_size=0.000 -- stage_id=1",
        "\tnode1 -- node2",
        "\tnode2 -- node3",
    ]
)


@cache
def contents() -> dict[str, Any]:
    """A sound document of every format: data for JSON, or a text."""
    graph, devices = some_workload()
    plan, latency = pt.solve(graph, devices), pt.solve(graph, devices, "latency", method="latency_dp")
    makespan = pt.solve(graph, devices, "makespan", method="heft")
    timeline = simulate(graph, devices, plan, "1f1b", 2)
    return {
        "workload": WORKLOAD,
        "devices": DEVICES,
        "constraints": CONSTRAINTS,
        "plan": json.loads(plan.to_json()),
        "latency": json.loads(latency.to_json()),
        "makespan": json.loads(makespan.to_json()),
        "split": SPLIT,
        "timeline": json.loads(timeline.to_json()),
        "table": torch_schedule(timeline.table),
        "profile": PROFILE,
        "journal": "".join(map(row_line, ROWS)),
        "metis": metis_document(),
        **({} if find_spec("onnx") is None else {"model": _model()}),
    }


NAMES = {
    "table": "table.csv",
    "profile": "profile.txt",
    "journal": "journal.jsonl",
    "metis": "metis/A100/mbs1_tmp1.json",
    "model": "model.onnx",
}


def file_name(kind: str) -> str:
    """What a file of that format is called."""
    return NAMES.get(kind, f"{kind}.json")


def _model() -> bytes:
    """A model of ONNX, in which shapes are computed."""
    from tests.integrations.onnx.models import cnn

    content: bytes = cnn("batch").SerializeToString()
    return content


def broken(kind: str, rng: random.Random) -> bytes:
    """A document of that format, with something wrong."""
    sound = contents()[kind]
    if isinstance(sound, bytes):
        data = _flipped(rng, sound)
    elif kind == "journal" and rng.random() < 0.7:  # a line whose JSON is broken in a finer way
        rows = sound.splitlines()
        data = "\n".join(rows[1:]).encode() + b"\n" + mutant(rng, json.loads(rows[0])) + b"\n"
    else:
        data = mutant(rng, sound) if not isinstance(sound, str) else _broken_text(rng, sound)
    return rng.choice(BYTES)(rng, data) if rng.random() < 0.15 else data


def write_all(folder: Path, replaced: dict[str, bytes]) -> None:
    """Write a file of every format; `replaced` has other contents for some."""
    for kind, sound in contents().items():
        (folder / file_name(kind)).parent.mkdir(parents=True, exist_ok=True)
        write(folder, replaced.get(kind, sound), file_name(kind))


def some_workload() -> tuple[pt.Graph, pt.Devices]:
    """What `WORKLOAD` says: a small graph that trains, and devices for it."""
    with TemporaryDirectory() as folder:
        workload = pt.load(write(Path(folder), WORKLOAD))
    return workload.graph, workload.devices


def _broken_text(rng: random.Random, text: str) -> bytes:
    lines = text.splitlines()
    place = rng.randrange(len(lines))
    line = lines[place]
    words = line.replace(",", " ").split() or [""]
    odd = str(rng.choice(ODD)) if rng.random() < 0.8 else "9" * 40
    changes: list[list[str]] = [
        [],
        [line, line],
        [line.replace(rng.choice(words), odd)],
        [line[: rng.randrange(len(line) + 1)]],
        [line + rng.choice(", \t;-=[]()")],
        [line.swapcase()],
    ]
    lines[place : place + 1] = rng.choice(changes)
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _flipped(rng: random.Random, content: bytes) -> bytes:
    """Bytes of which one to three are changed, and a few at times left out."""
    data = bytearray(content)
    for _ in range(rng.randrange(1, 4)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    if rng.random() < 0.2:
        place = rng.randrange(len(data))
        del data[place : place + rng.randrange(1, 20)]
    return bytes(data)


BYTES: tuple[Callable[[random.Random, bytes], bytes], ...] = (
    lambda rng, data: b"",
    lambda rng, data: b"\xef\xbb\xbf" + data,
    lambda rng, data: data.decode("utf-8", "replace").encode("utf-16"),
    lambda rng, data: data[: rng.randrange(len(data) + 1)],
    lambda rng, data: rng.randbytes(40),
    lambda rng, data: data.replace(b"\n", b"\r\n") + b"\x00",
    lambda rng, data: b"[" * 100_000,
)
