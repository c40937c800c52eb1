"""Every committed instance has its optimum in the index, and solving it again gives the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from architectures.catalogue import WORKLOADS
from architectures.files import write

from partitioner import load, solve

FOLDER = Path(__file__).parents[1] / "instances"
QUICK = {"bert3_operator_inference", "bert24_training", "gnmt_training", "resnet50_inference"}
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))


def test_index_names_every_instance() -> None:
    """Files, index and generator speak of the same instances."""
    files = {path.stem for path in FOLDER.glob("*.json")} - {"index"}
    assert files == set(INDEX) == set(WORKLOADS)
    assert set(INDEX) >= QUICK


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in INDEX]
)
def test_optimum_is_found_again(name: str) -> None:
    """The plan is proven optimal at the value of the index, for the same input."""
    workload = load(FOLDER / f"{name}.json")
    plan = solve(workload.graph, workload.devices)
    assert plan.status == INDEX[name]["status"] == "optimal"
    assert plan.value == pytest.approx(INDEX[name]["optimum"], rel=1e-9)
    assert plan.workload_sha256 == INDEX[name]["workload_sha256"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_generator_writes_the_committed_file(name: str, tmp_path: Path) -> None:
    """The generator is deterministic: it writes the file that is committed, byte for byte."""
    write(WORKLOADS[name].instance(), tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (FOLDER / f"{name}.json").read_bytes()


def test_committed_files_are_small() -> None:
    """All instances together take less than 5 MB."""
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 5_000_000
