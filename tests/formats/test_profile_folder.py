"""A folder of profiles is a graph with times on every kind; what does not fit together is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import DeviceKind, Devices, OptionError, WorkloadError, load, solve
from tests.formats.test_metis import document

FOLDER = Path(__file__).parents[3] / "shared" / "benchmarks" / "sailor"
MIB = 2**20


def profiles(root: Path, files: dict[str, Any]) -> Path:
    """The folder `model.8` with these files."""
    for name, content in files.items():
        path = root / "model.8" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return root / "model.8"


def faster(factor: float) -> dict[str, Any]:
    content = document()
    times = content["execution_time"]["layer_compute_total_ms"]
    content["execution_time"]["layer_compute_total_ms"] = [each / factor for each in times]
    return content


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two kinds at size 1; one of them also at size 2 and at degree 4, with more memory."""
    larger = faster(3)
    larger["execution_memory"]["layer_memory_total_mb"] = [1, 5, 0]
    files = {"V100-16/mbs1_tmp1.json": document(), "H100/mbs1_tmp1.json": larger}
    return profiles(tmp_path, files | {"H100/mbs2_tmp1.json": document(), "H100/mbs1_tmp4.json": document()})


def test_every_kind_has_its_times(folder: Path) -> None:
    workload = load(folder, batch=1, bandwidth=1e4)
    graph = workload.graph
    assert workload.name == "model.8"
    assert graph.kinds == ("H100", "V100-16")
    assert graph.time[1].tolist() == pytest.approx([1, 2, 0.5, 2, 4, 1])
    assert graph.time[0].tolist() == pytest.approx((graph.time[1] / 3).tolist())
    assert graph.size.tolist()[:3] == [MIB - 4, 5 * MIB - 5, 0]
    assert workload.devices.names == ("H100:0", "V100-16:0")
    assert (graph.extras.top["batch"], graph.extras.top["degree"]) == (1, 1)


def test_kinds_without_that_size_or_degree_are_left_out(folder: Path) -> None:
    assert load(folder, batch=2, bandwidth=1e4).graph.kinds == ("H100",)
    assert load(folder, degree=4, bandwidth=1e4).graph.kinds == ("H100",)


def test_a_pool_is_planned(folder: Path) -> None:
    """Both passes of the layers take 3, 6 and 1.5 on a V100, a third of that on an H100."""
    devices = Devices((DeviceKind("H100", 1), DeviceKind("V100-16", 1)))
    workload = load(folder, devices=devices, batch=1, bandwidth=1e12)
    plan = solve(workload.graph, workload.devices)
    assert plan.value == pytest.approx(3.0)
    assert plan.stages in (("V100-16:0", "H100:0"), ("H100:0", "V100-16:0"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "batch = None: must be a size of the folder's profiles: 1, 2"),
        ({"batch": 3}, "batch = 3: must be a size of the folder's profiles: 1, 2"),
        ({"batch": 0}, "batch = 0: must be an integer of at least 1"),
        ({"batch": 1, "degree": "2"}, "degree = '2': must be an integer of at least 1"),
        (
            {"batch": 1, "degree": 2},
            "batch = 1: must be a size of the folder's profiles: none at this",
        ),
        ({"batch": 1, "bandwidth": None}, "bandwidth = None: must be a number above 0"),
        ({"batch": 1, "sequence": 2}, "sequence = 2: means nothing to a folder of profiles"),
    ],
)
def test_what_a_call_lacks_is_named(folder: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as error:
        load(folder, **{"bandwidth": 1e4, **options})
    assert message in str(error.value)


def test_profiles_of_different_models_are_refused(tmp_path: Path) -> None:
    other = document()
    other["model"]["parameters"]["activation_parameters_bytes"] = [10, 21, 30]
    folder = profiles(tmp_path, {"a/mbs1_tmp1.json": document(), "b/mbs1_tmp1.json": other})
    with pytest.raises(WorkloadError, match=r"model\.8: folder b: cost: must be as in folder a"):
        load(folder, bandwidth=1e4)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    broken = document() | {"execution_memory": {}}
    folder = profiles(tmp_path, {"a/mbs1_tmp1.json": broken})
    with pytest.raises(WorkloadError, match=r"a/mbs1_tmp1\.json: execution_memory: layer_memory_total_mb"):
        load(folder, bandwidth=1e4)


def test_a_folder_without_profiles_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="must hold a folder for each kind of device"):
        load(profiles(tmp_path, {"a/readme.json": {}}), bandwidth=1e4)


@pytest.mark.skipif(not FOLDER.exists(), reason=f"{FOLDER} is not there")
@pytest.mark.parametrize(
    ("name", "degree", "kinds"),
    [
        ("metis/OPT-350", 1, 7),
        ("metis/GPT-Neo-2.7", 2, 3),
        ("metis/LLAMA-3-8", 4, 3),
        ("piper/OPT-350", 1, 7),
        ("piper/LLAMA-3-8", 4, 2),
    ],
)
def test_published_folders_are_read(name: str, degree: int, kinds: int) -> None:
    workload = load(FOLDER / name, batch=1, degree=degree, bandwidth=25e9)
    assert len(workload.graph.kinds) == kinds
    assert workload.graph.allowed.all()
    assert (workload.graph.parts[3].sum() > 0) == name.startswith("piper")
