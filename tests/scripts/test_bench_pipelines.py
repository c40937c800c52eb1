"""The benchmark solves every setting of a workload and tells its cost against the first one."""

from __future__ import annotations

from pathlib import Path

import bench_pipelines
import pytest

import partitioner as pt
from tests.instances import document, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, document())


def test_every_setting_has_a_row(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_pipelines.main([str(path), "--repeat", "1", "--format", "markdown"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert rows[0][0] == "| workload" and len(rows) == 2 + len(bench_pipelines.SETTINGS)
    assert [row[1] for row in rows[2:]] == list(bench_pipelines.SETTINGS)
    assert rows[2][5] == "1.0" and all(row[6] == "optimal |" for row in rows[2:])


def test_settings_change_the_devices_as_they_say() -> None:
    devices = pt.Devices.accelerated(3, memory=5.0, cpus=1)
    replicated, options = bench_pipelines.replicated(devices)
    assert options == {"replicas": 3} and replicated.kinds[0].bandwidth == bench_pipelines.BANDWIDTH
    servers, options = bench_pipelines.two_servers(devices)
    assert options == {} and [kind.count for kind in servers.kinds] == [4]
    assert servers.levels[0].size("accelerator") == 2


def test_bad_input_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_pipelines.main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        bench_pipelines.main(["x", "--settings", "fast"])
    assert "choose from plain" in capsys.readouterr().err
