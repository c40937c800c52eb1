"""What a command line names is what is solved; what does not go together is refused in its own words."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import Constraints, Devices, OptionError, WorkloadError, load, load_pipedream
from partitioner.cli.argument import pool
from partitioner.cli.arguments import command_parser
from partitioner.cli.command_line import main
from partitioner.cli.inputs import read_constraints, read_workload
from partitioner.workload.constraints import ANY
from tests.instances import document, write

FIELDS = "forward_compute_time={}, backward_compute_time={}, activation_size={}, parameter_size={}"
LAYERS = [(1, 2, 800, 50), (3, 4, 500, 70), (2, 2, 100, 60)]
KINDS = [{"name": "gpu", "count": 3, "times": "accelerator", "memory": 5e3, "bandwidth": 40.0}]
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def profile_file(tmp_path: Path) -> Path:
    """Three layers in a row."""
    nodes = [f"node{i} -- Linear -- {FIELDS.format(*layer)}" for i, layer in enumerate(LAYERS, 1)]
    return write(tmp_path, "\n".join([*nodes, "\tnode1 -- node2", "\tnode2 -- node3"]), "net.txt")


@pytest.fixture
def devices_file(tmp_path: Path) -> Path:
    return write(tmp_path, {"kinds": KINDS, "communication": "duplex"}, "devices.json")


def parsed(*words: object) -> argparse.Namespace:
    """The options of a command, which is not run."""
    commands = dict.fromkeys(("solve", "evaluate", "methods"), lambda options: None)
    return command_parser(commands).parse_args([str(word) for word in words])


def devices_for(*words: object) -> Devices:
    return read_workload(parsed("solve", *words)).devices


def counts(devices: Devices) -> dict[str, int]:
    return {kind.name: kind.count for kind in devices.kinds}


def solved(capsys: Captured, *words: object) -> dict[str, Any]:
    """The plan that ``partitioner solve`` prints."""
    code = main(["solve", *map(str, words), "--format", "json"])
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    plan: dict[str, Any] = json.loads(out)
    return plan


def refused(capsys: Captured, *words: object) -> str:
    """What is said of a command that is refused, as bad input and with nothing on standard output."""
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    expected = 3 if "larger than the memory" in err else 2
    assert (code, out) == (expected, "") and err.startswith("partitioner: ") and err.count("\n") == 1
    return err.removeprefix("partitioner: ").strip()


def test_nothing_said_changes_nothing(workload_file: Path) -> None:
    found, expected = read_workload(parsed("solve", workload_file)), load(workload_file)
    assert (found.sha256, found.name) == (expected.sha256, expected.name)


def test_counts_memory_and_communication_replace_those_of_the_file(workload_file: Path) -> None:
    """Memory is that of accelerators."""
    words = ("--accelerators", 3, "--cpus", 2, "--memory", 1800, "--communication", "overlapped")
    devices = devices_for(workload_file, *words)
    assert counts(devices) == {"accelerator": 3, "cpu": 2} and devices.communication == "overlapped"
    assert [kind.memory for kind in devices.kinds] == [1800.0, None]
    only = devices_for(workload_file, "--cpus", 0)
    assert counts(only) == {"accelerator": 2, "cpu": 0} and only.communication == "sequential"
    assert only.kinds[0].memory == document()["maxSizePerFPGA"]


def test_what_is_said_counts_even_where_the_file_alone_is_unsound(tmp_path: Path) -> None:
    """Memory of 10 is too little for every node."""
    small = write(tmp_path, document() | {"maxSizePerFPGA": 10, "maxCPUs": 0})
    with pytest.raises(WorkloadError, match="larger than the memory of every device"):
        load(small)
    assert devices_for(small, "--memory", 2000).kinds[0].memory == 2000.0


def test_a_devices_file_replaces_all_devices(workload_file: Path, devices_file: Path) -> None:
    devices = devices_for(workload_file, "--devices", devices_file)
    assert devices.names == ("gpu0", "gpu1", "gpu2") and devices.communication == "duplex"
    said = devices_for(workload_file, "--devices", devices_file, "--communication", "sequential")
    assert said.kinds == devices.kinds and said.communication == "sequential"


@pytest.mark.parametrize("option", ["accelerators", "memory", "cpus"])
def test_devices_are_said_once(
    capsys: Captured, workload_file: Path, devices_file: Path, option: str
) -> None:
    said = refused(capsys, "solve", workload_file, "--devices", devices_file, f"--{option}", 2)
    assert said == f"--{option} and --devices say the same: give one of them"


def test_constraints_come_from_the_file_and_the_line(workload_file: Path, tmp_path: Path) -> None:
    graph = load(workload_file).graph
    demanded = {"pin": {"1": "cpu"}, "stages": 3, "layers_per_stage": [1, None]}
    path = write(tmp_path, demanded, "constraints.json")
    alone = read_constraints(parsed("solve", workload_file, "--constraints", path), graph)
    assert alone == Constraints(pin={1: "cpu"}, stages=3, layers_per_stage=(1, None))
    words = ("--stages", 2, "--neighbours-only", "--use-all-devices", "--equal-replicas")
    both = read_constraints(parsed("solve", workload_file, "--constraints", path, *words), graph)
    assert (both.pin, both.layers_per_stage, both.nodes_per_stage) == ({1: "cpu"}, (1, None), ANY)
    assert (both.stages, both.neighbours_only, both.use_all_devices, both.equal_replicas) == (
        2,
        True,
        True,
        True,
    )
    assert read_constraints(parsed("solve", workload_file), graph).empty


def test_constraints_are_obeyed(capsys: Captured, workload_file: Path, tmp_path: Path) -> None:
    free = solved(capsys, workload_file)
    assert len(free["stages"]) < 3 and free["placement"]["3"] != "cpu0"
    assert len(solved(capsys, workload_file, "--stages", 3)["stages"]) == 3
    used = solved(capsys, workload_file, "--use-all-devices")
    assert all(entry["nodes"] > 0 for entry in used["devices"]) and len(used["devices"]) == 3
    pinned = write(tmp_path, {"pin": {"3": "cpu"}}, "constraints.json")
    assert solved(capsys, workload_file, "--constraints", pinned)["placement"]["3"] == "cpu0"


def test_only_neighbours_exchange_tensors(capsys: Captured, tmp_path: Path) -> None:
    """Three nodes in a row and an edge from the first to the last, which would lead over the second stage."""
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 2, "isBackwardNode": 0, "size": 0}
        for i in range(3)
    ]
    edges = [{"sourceId": u, "destId": v, "cost": 0.1} for u, v in ((0, 1), (1, 2), (0, 2))]
    content = {"maxSizePerFPGA": 9, "maxFPGAs": 3, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    path = write(tmp_path, content)
    assert len(solved(capsys, path)["stages"]) == 3
    assert len(solved(capsys, path, "--neighbours-only")["stages"]) == 2


def test_replicas_schedule_and_batch_reach_the_solver(capsys: Captured, profile_file: Path) -> None:
    """Three layers of 3, 7 and 4 on two devices; at 1e9 bytes a second nothing else takes time.

    Two replicas take 7 in place of 7 | 7 or 10 | 4; a batch of 5 takes 5 * 7 + 7 in two stages.
    """
    base = (profile_file, "--bandwidth", 1e9, "--accelerators", 2)
    assert solved(capsys, *base)["value"] == pytest.approx(10.0, abs=0.01)
    both = solved(capsys, *base, "--replicas", 2)
    assert both["method"] == "pipeline" and both["value"] == pytest.approx(7.0, abs=0.01)
    assert both["options"]["replicas"] == 2
    batch = solved(capsys, *base, "--objective", "batch", "--microbatches", 5)
    assert batch["value"] == pytest.approx(14.0 + 4 * 10.0, abs=0.05)
    held = solved(capsys, *base, "--schedule", "gpipe", "--microbatches", 3)
    assert sum(entry["memory"] for entry in held["devices"]) == 2 * 180 + 3 * 1400


def test_a_profile_is_read_for_training_or_inference(profile_file: Path) -> None:
    words = ("solve", profile_file, "--bandwidth", 1e6, "--accelerators", 2, "--memory", 3e3)
    training = read_workload(parsed(*words))
    expected = load_pipedream(profile_file, bandwidth=1e6, accelerators=2, memory=3e3)
    assert training.sha256 == expected.sha256 and len(training.graph) == 6
    assert [kind.bandwidth for kind in training.devices.kinds] == [1e3, None]
    assert len(read_workload(parsed(*words, "--inference")).graph) == 3
    slow = read_workload(parsed(*words, "--cpus", 1, "--cpu-factor", 5))
    assert slow.graph.time[1].tolist() == [5 * t for t in slow.graph.time[0]]
    assert counts(slow.devices) == {"accelerator": 2, "cpu": 1}


def test_a_profile_goes_with_a_devices_file(capsys: Captured, profile_file: Path, devices_file: Path) -> None:
    plan = solved(capsys, profile_file, "--bandwidth", 1e9, "--devices", devices_file, "--replicas", 3)
    assert [entry["name"] for entry in plan["devices"]] == ["gpu0", "gpu1", "gpu2"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a profile needs --bandwidth, in bytes per second"),
        (["--bandwidth", 1e9], "a profile needs --accelerators or --devices"),
        (["--bandwidth", 0, "--accelerators", 2], "--bandwidth = 0.0: must be a number above 0"),
        (
            ["--bandwidth", 1e9, "--accelerators", 2, "--cpus", 1],
            "a profile needs --cpu-factor for --cpus: it has no times of CPUs",
        ),
        (
            ["--bandwidth", 1e9, "--accelerators", 2, "--cpu-factor", -1],
            "--cpu-factor = -1.0: must be a number above 0",
        ),
        (
            ["--bandwidth", 1e9, "--accelerators", 2, "--memory", 800],
            "net.txt: colour class 'node1': total memory = 900.0: larger than",
        ),
    ],
)
def test_what_a_profile_lacks_is_named(
    capsys: Captured, profile_file: Path, words: list[object], message: str
) -> None:
    assert message in refused(capsys, "solve", profile_file, *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--bandwidth", 0], "--bandwidth means nothing to a workload file"),
        (["--cpu-factor", 2], "--cpu-factor means nothing to a workload file"),
        (["--inference"], "--inference means nothing to a workload file"),
        (["--accelerators", -1], "device kind accelerator: count = -1: must be"),
        (["--accelerators", 0, "--cpus", 0], "devices: count"),
        (["--memory", -5], "device kind accelerator: memory = -5.0: must be"),
        (["--devices", "nowhere.json"], "nowhere.json: file: No such file or directory"),
        (["--constraints", "nowhere.json"], "nowhere.json: file: No such file or directory"),
        (["--stages", 0], "constraints: stages = 0: must be an integer of at least 1"),
        (["--replicas", 0], "replicas = 0: must be an integer of at least 1"),
        (["--microbatches", 0], "microbatches = 0: must be an integer of at least 1"),
        (["--schedule", "gpipe"], "schedule 'gpipe' needs microbatches"),
        (["--objective", "batch"], "objective 'batch' needs microbatches"),
        (["--method", "dp", "--stages", 2], "limits on stages and pins to a device mean nothing to method"),
        (["--method", "dp", "--replicas", 2], "replicas mean nothing to method dp, only to"),
        (["--method", "pipedream", "--schedule", "1f1b"], "schedules mean nothing to method pipedream"),
    ],
)
def test_what_does_not_go_together_is_refused(
    capsys: Captured,
    workload_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[object],
    message: str,
) -> None:
    monkeypatch.chdir(workload_file.parent)
    assert message in refused(capsys, "solve", workload_file, *words)


@pytest.mark.parametrize(
    ("demanded", "message"),
    [
        ({"pin": {"99": "cpu"}}, "constraints: pin = '99': must be the id of a node or match a node's name"),
        (
            {"pin": {"1": "tpu"}},
            "constraints: pin = 'tpu': is not a kind or device; there are accelerator (2)",
        ),
        ({"stages": "two"}, "constraints.json: file: stages = 'two': must be a whole number"),
        ({"stage": 2}, "constraints.json: file: stage: is not a field; these are pin"),
    ],
)
def test_flaws_of_constraints_are_named(
    capsys: Captured, workload_file: Path, tmp_path: Path, demanded: dict[str, Any], message: str
) -> None:
    path = write(tmp_path, demanded, "constraints.json")
    assert message in refused(capsys, "solve", workload_file, "--constraints", path)


def test_a_devices_file_of_an_unknown_kind_is_refused(
    capsys: Captured, workload_file: Path, tmp_path: Path
) -> None:
    path = write(tmp_path, {"kinds": [{"name": "tpu", "count": 2}]}, "devices.json")
    said = refused(capsys, "solve", workload_file, "--devices", path)
    assert "kind = 'tpu': the graph has times only for accelerator, cpu" in said


@pytest.mark.parametrize("option", ["--schedule", "--communication", "--granularity"])
def test_a_word_that_is_none_of_the_choices_is_wrong_usage(
    capsys: Captured, workload_file: Path, option: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["solve", str(workload_file), option, "nonsense"])
    assert caught.value.code == 2
    assert f"argument {option}: invalid choice: 'nonsense'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["method", "objective"])
def test_a_name_that_nothing_has_is_wrong_usage(capsys: Captured, workload_file: Path, name: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["solve", str(workload_file), f"--{name}", "nonsense"])
    assert caught.value.code == 2
    assert f"argument --{name}: {name} = 'nonsense': must be one of " in capsys.readouterr().err


def test_a_pool_takes_the_place_of_the_devices(profile_file: Path, devices_file: Path) -> None:
    """Numbers by kind, and memory where it is given."""
    words = profile_file, "--bandwidth", "1e3"
    devices = devices_for(*words, "--pool", "accelerator=3:2GB")
    assert counts(devices) == {"accelerator": 3}
    assert devices.kinds[0].memory == 2e9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--pool", "gpu=3"), "pool: 'gpu' must be one of accelerator, cpu"),
        (("--pool", "accelerator=3", "--accelerators", "2"), "--accelerators and --pool say the same"),
        (("--pool", "accelerator=3", "--devices", "x.json"), "--devices and --pool say the same"),
    ],
)
def test_a_pool_that_does_not_fit(profile_file: Path, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError) as error:
        devices_for(profile_file, "--bandwidth", "1e3", *words)
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["gpu", "gpu=x", "=3", "gpu=1,gpu=2", "gpu=1:much"])
def test_a_pool_that_cannot_be_read(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        pool(text)
