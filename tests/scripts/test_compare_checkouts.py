"""The comparison of checkouts finds every difference of two packages, here of tiny fakes, and no other."""

from __future__ import annotations

from pathlib import Path

import compare_checkouts
import pytest
from checkouts.jobs import Job, drawn, jobs_of, shared
from checkouts.process import Checkout, CheckoutError
from checkouts.runs import Run, differences

PACKAGE = """
import json, time
from collections import namedtuple
from types import SimpleNamespace

Progress = Graph = Devices = Plan = SimpleNamespace
class PartitionerError(Exception): ...
class NoPlanFound(PartitionerError): ...

def load(file):
    graph = SimpleNamespace(backward=SimpleNamespace(any=lambda: False))
    return SimpleNamespace(graph=graph, devices=namedtuple("Devices", "kinds")(()))

def solve(graph, devices, objective, *, method, split, seed, stop, **options):
    print("solvers may print")
    if method == "slow":
        while not stop.is_set():
            time.sleep(0.01)
    if method == "fails":
        raise {failure}("no plan")
    record = {{"value": {value}, "bound": 1.0, "placement": {{"a": {device!r}, "b": "gpu0"}}}}
    return SimpleNamespace(to_json=lambda: json.dumps(record | {{"runtime_seconds": time.time()}}))
"""
REGISTRY = """
from types import SimpleNamespace

class Info:
    objectives, features, backends = ("throughput",), ("levels",), ("numba",)
    def splits_for(self, objective): return ("chain",)

METHODS = {name: Info() for name in NAMES}
"""


def checkout(
    folder: Path,
    value: float = 2.0,
    device: str = "gpu0",
    failure: str = "NoPlanFound",
    names: str = "dp,fails",
) -> Path:
    """A folder with a package that answers every call with the same plan."""
    package = folder / "partitioner"
    (package / "methods").mkdir(parents=True)
    source = PACKAGE.format(value=value, device=device, failure=failure)
    (package / "__init__.py").write_text(source, encoding="utf-8")
    (package / "methods" / "__init__.py").touch()
    registry = f"NAMES = {names.split(',')}\n{REGISTRY}"
    (package / "methods" / "registry.py").write_text(registry, encoding="utf-8")
    return folder


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_text('{"nodes": [1, 2]}', encoding="utf-8")
    return path


def test_equal_checkouts_are_equal(tmp_path: Path, workload: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What they have alone is left out; an error of the same type is an equal answer."""
    old = checkout(tmp_path / "old", names="dp,fails,gone")
    new = checkout(tmp_path / "new", names="dp,fails,added")
    words = [str(old), str(new), "--workloads", str(workload), "--times", "2"]
    assert compare_checkouts.main(words) == 0
    out = capfd.readouterr().out
    assert out.startswith(
        "2 jobs compared: 2 equal (1 of them without a plan, for the same reason), 0 different"
    )
    assert out.count("| small throughput dp chain | ") == 1 and out.count("| throughput dp chain | ") == 1


def test_every_difference_is_printed(
    tmp_path: Path, workload: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old = checkout(tmp_path / "old")
    new = checkout(tmp_path / "new", value=3.0, device="gpu1", failure="PartitionerError")
    assert compare_checkouts.main([str(old), str(new), "--workloads", str(workload)]) == 1
    out = capfd.readouterr().out
    assert (
        "small throughput dp chain differs\n  value: 2.0, then 3.0\n  placement: 1 of 2 entries differ" in out
    )
    assert "fails chain differs\n  NoPlanFound (no plan), then PartitionerError (no plan)" in out
    assert "2 jobs compared: 0 equal" in out


def test_a_run_that_patience_ends_is_not_compared(
    tmp_path: Path, workload: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    old, new = checkout(tmp_path / "old", names="slow"), checkout(tmp_path / "new", value=3.0, names="slow")
    words = [str(old), str(new), "--workloads", str(workload), "--patience", "0.05"]
    assert compare_checkouts.main(words) == 0
    out = capfd.readouterr().out
    assert "0 jobs compared" in out and "1 ended by patience and not compared" in out and "slow chain" in out


def test_a_folder_without_a_package_is_refused(
    tmp_path: Path, workload: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also where another package of that name can be imported, as the one that is installed."""
    (tmp_path / "empty").mkdir()
    old = checkout(tmp_path / "old")
    words = [str(old), str(tmp_path / "empty"), "--workloads", str(workload)]
    assert compare_checkouts.main(words) == 2
    assert f"{tmp_path / 'empty'}: " in capfd.readouterr().err
    assert compare_checkouts.main([str(old), str(old), "--workloads", str(tmp_path / "none.json")]) == 2


def test_a_process_that_ends_is_told(tmp_path: Path, workload: Path) -> None:
    folder = checkout(tmp_path / "old", failure="SystemExit")
    with Checkout(folder) as process, pytest.raises(CheckoutError, match="its process ended at"):
        process.run(Job(str(workload), "throughput", "fails", "chain"), 0, 1.0)


def test_jobs_have_a_setting_for_every_feature() -> None:
    able = {
        ("pipeline", "batch", "chain"): {"replicas", "levels", "schedule"},
        ("ip", "gpipe", "free"): set(),
    }
    jobs = jobs_of(able, [Path("a.json"), Path("b.json")])
    assert len(jobs) == 8 and str(jobs[-1]) == "b batch pipeline chain schedule"
    assert [job.method for job in jobs_of(able, [Path("a.json")], methods=["ip"])] == ["ip"]


def test_a_method_that_takes_account_of_more_is_compared() -> None:
    """Its jobs are those that both checkouts can be asked for."""
    pipeline = ("pipeline", "batch", "chain")
    both = shared(
        {pipeline: {"replicas"}}, {pipeline: {"replicas", "schedule"}, ("added", *pipeline[1:]): set()}
    )
    jobs = jobs_of(both, [Path("a.json")])
    assert [str(job) for job in jobs] == ["a batch pipeline chain", "a batch pipeline chain replicas"]
    assert [job.setting for job in drawn(jobs, 9, seed=1)] == ["plain", "replicas"]


def test_lists_and_long_values_are_told_in_a_line() -> None:
    first = Run(1.0, False, {"devices": [1, 2, 3], "status": "x" * 99})
    second = Run(2.0, False, {"devices": [1, 2, 4], "status": "y"})
    found = differences(first, second)
    assert found[0] == "devices: lists of 3 and 3 entries that differ from entry 2 on"
    assert len(found[1]) < 100 and differences(first, first) == []
