"""The three bandwidths and the route of a command line are those of Python, and change what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner.cli.command_line import main

CONFIG = {
    "model_type": "gpt2",
    "n_embd": 1024,
    "n_layer": 6,
    "n_head": 16,
    "vocab_size": 32000,
    "n_positions": 512,
}
GIVEN = ("--sequence", "512", "--device", "A100-80", "--accelerators", "4", "--objective", "throughput")
PIPELINE = ("--schedule", "1f1b", "--microbatches", "8", "--replicas", "2")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A config of a small GPT-2."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG))
    return path


def planned(config: Path, capsys: Captured, *words: str) -> dict[str, Any]:
    """The plan that ``partitioner solve`` prints."""
    assert main(["solve", str(config), *GIVEN, *PIPELINE, *words, "--format", "json"]) == 0
    plan: dict[str, Any] = json.loads(capsys.readouterr().out)
    return plan


def in_python(config: Path, **links: Any) -> pt.Plan:
    """The plan of the same call in Python."""
    workload = pt.load_config(config, sequence=512, device="A100-80", accelerators=4, microbatches=8, **links)
    return pt.solve(
        workload.graph, workload.devices, "throughput", schedule="1f1b", microbatches=8, replicas=2
    )


@pytest.mark.parametrize(
    ("words", "links"),
    [
        (("--bandwidth", "25GB/s"), {"bandwidth": 25e9}),
        (("--peer-bandwidth", "100GB/s"), {"peer_bandwidth": 100e9}),
        (
            ("--bandwidth", "25GB/s", "--peer-bandwidth", "100GB/s"),
            {"bandwidth": 25e9, "peer_bandwidth": 100e9},
        ),
        (
            ("--bandwidth", "25GB/s", "--exchange-bandwidth", "1e9"),
            {"bandwidth": 25e9, "exchange_bandwidth": 1e9},
        ),
        (("--bandwidth", "25GB/s", "--link-latency", "5us"), {"bandwidth": 25e9, "link_latency": 5e-6}),
    ],
)
def test_a_command_line_plans_what_python_does(
    config: Path, capsys: Captured, words: tuple[str, ...], links: dict[str, Any]
) -> None:
    plan, other = planned(config, capsys, *words), in_python(config, **links)
    assert plan["value"] == other.value
    assert plan["workload_sha256"] == other.workload_sha256


def test_each_option_changes_its_own_times(config: Path, capsys: Captured) -> None:
    """Faster links between devices those of transfers, slower ones of the exchange that of replicas."""
    two = ("--bandwidth", "25GB/s", "--stages", "2", "--use-all-devices")
    usual = planned(config, capsys, *two)
    slower = planned(config, capsys, *two, "--exchange-bandwidth", "0.1GB/s")
    assert usual["value"] < slower["value"]
    four = ("--bandwidth", "25GB/s", "--stages", "4")
    usual = planned(config, capsys, *four)
    faster = planned(config, capsys, *four, "--peer-bandwidth", "250GB/s")
    assert faster["value"] < usual["value"]


def test_the_route_is_that_of_the_option(config: Path, capsys: Captured) -> None:
    """Through host memory both ends pay for the whole time; the plan's text says which model is in force."""
    values = {}
    for route, words in (("direct", "from device to device"), ("host", "host memory")):
        values[route] = planned(config, capsys, "--bandwidth", "1GB/s", "--route", route)["value"]
        assert main(["solve", str(config), *GIVEN, *PIPELINE, "--bandwidth", "1GB/s", "--route", route]) == 0
        assert words in " ".join(capsys.readouterr().out.split())
    assert values["direct"] <= values["host"]
    host = planned(config, capsys, "--peer-bandwidth", "1GB/s", "--route", "host")
    assert host["value"] == values["host"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--bandwidth", "25GB/s", "--exchange-bandwidth", "0"), "exchange"),
        (("--bandwidth", "25GB/s", "--peer-bandwidth", "-1"), "peer"),
        (("--bandwidth", "25GB/s", "--route", "air"), "route"),
    ],
)
def test_what_is_no_link_is_refused(
    config: Path, capsys: Captured, words: tuple[str, ...], message: str
) -> None:
    try:
        code = main(["solve", str(config), *GIVEN, *words])
    except SystemExit as end:
        code = int(str(end.code))
    assert code == 2 and message in capsys.readouterr().err
