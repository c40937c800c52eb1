"""The command line keeps its contract: exit codes, one JSON object on stdout, talk on stderr."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import partitioner.cli.command_line
from partitioner import Plan, evaluate, load, load_plan
from partitioner.cli.command_line import main
from partitioner.methods.registry import METHODS
from tests.instances import document, write

PLAN_FIELDS = {
    "objective", "split", "value", "bound", "gap", "status", "stop_reason", "method", "backend",
    "runtime_seconds", "devices", "placement", "workload_sha256", "options",
}  # fmt: skip
Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def small_workload(folder: Path, **fields: Any) -> Path:
    """Three nodes of size 3 in a row on two accelerators, with other fields as given."""
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1, "isBackwardNode": 0, "size": 3}
        for i in range(3)
    ]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0.25} for i in range(2)]
    content = {"maxSizePerFPGA": 9, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    return write(folder, content | fields, "small.json")


def test_solve_prints_a_table(capsys: Captured, workload_file: Path) -> None:
    code, out, err = run(capsys, "solve", workload_file)
    assert code == 0 and err == ""
    assert out.startswith("throughput, chain split: ") and "accelerator1" in out


def test_solve_prints_exactly_one_json_object(capsys: Captured, workload_file: Path) -> None:
    """With every field of the contract, and nothing on standard error, which is no terminal."""
    code, out, err = run(capsys, "solve", workload_file, "--format", "json")
    record = json.loads(out)
    assert code == 0 and err == "" and set(record) >= PLAN_FIELDS
    assert {"name", "kind", "load", "memory", "nodes"} <= set(record["devices"][0])
    assert record["status"] == "optimal" and record["value"] == record["bound"]
    assert record["workload_sha256"] == load(workload_file).sha256


def test_output_writes_the_same_plan(capsys: Captured, workload_file: Path, tmp_path: Path) -> None:
    code, out, _ = run(capsys, "solve", workload_file, "--format", "json", "--output", tmp_path / "plan.json")
    assert code == 0
    assert (tmp_path / "plan.json").read_text(encoding="utf-8") == out


def test_options_reach_the_solver(capsys: Captured, workload_file: Path) -> None:
    options = ("--method", "dpl", "--gap", "0.5", "--seed", "4", "--time-limit", "30", "--orders", "2")
    code, out, _ = run(
        capsys, "solve", workload_file, *options, "--communication", "duplex", "--format", "json"
    )
    record = json.loads(out)
    assert code == 0 and (record["method"], record["seed"]) == ("dpl", 4)
    assert record["options"] == {"method": "dpl", "time_limit": 30.0, "gap": 0.5, "orders": 2}
    assert record["workload_sha256"] == load(workload_file, "duplex").sha256


def test_evaluate_of_a_plan_gives_its_value(capsys: Captured, workload_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    run(capsys, "solve", workload_file, "--output", path)
    code, out, err = run(capsys, "evaluate", workload_file, path, "--format", "json")
    record, plan = json.loads(out), load_plan(path)
    assert code == 0 and err == "" and record["feasible"] and record["violations"] == []
    assert (record["value"], record["shape"]["order"]) == (plan.value, list(plan.stages))


def test_evaluate_takes_an_objective(capsys: Captured, workload_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    run(capsys, "solve", workload_file, "--output", path)
    options = ("--format", "json", "--objective", "gpipe")
    record = json.loads(run(capsys, "evaluate", workload_file, path, *options)[1])
    workload = load(workload_file)
    expected = evaluate(workload.graph, workload.devices, load_plan(path).placement, "gpipe")
    assert (record["objective"], record["value"]) == ("gpipe", expected.value)


def test_evaluate_tells_the_schedule_for_latency_only(
    capsys: Captured, workload_file: Path, tmp_path: Path
) -> None:
    path = tmp_path / "plan.json"
    run(capsys, "solve", workload_file, "--output", path)
    options = ("--format", "json", "--objective", "latency")
    code, out, _ = run(capsys, "evaluate", workload_file, path, *options)
    record = json.loads(out)
    assert code == 0 and record["value"] == max(run["finish"] for run in record["schedule"]["entries"])
    assert "schedule" not in json.loads(run(capsys, "evaluate", workload_file, path, *options[:2])[1])


def test_a_latency_without_a_schedule_is_strict_json(capsys: Captured, tmp_path: Path) -> None:
    """With 1 -> 2 and 3 -> 4, parts 1 4 and 2 3 wait for each other."""
    content = document()
    node = {"supportedOnFpga": 1, "fpgaLatency": 1, "cpuLatency": 1, "isBackwardNode": 0, "size": 0}
    content["nodes"] = [{"id": i, **node} for i in (1, 2, 3, 4)]
    content["edges"] = [{"sourceId": u, "destId": u + 1, "cost": 0} for u in (1, 3)]
    split = write(tmp_path, {"fpgas": [{"nodes": [1, 4]}, {"nodes": [2, 3]}], "cpus": []}, "split.json")
    options = ("--objective", "latency", "--format", "json")
    code, out, _ = run(capsys, "evaluate", write(tmp_path, content), split, *options)
    record = json.loads(out)
    assert code == 0 and (record["value"], record["schedule"], record["feasible"]) == (None, None, False)


def test_evaluate_takes_a_split(capsys: Captured, workload_file: Path, tmp_path: Path) -> None:
    """With its backward nodes left out; what is wrong with it is said, and is no error."""
    split = {"fpgas": [{"nodes": [1, 4]}, {"nodes": [2, 3]}], "cpus": []}
    code, out, _ = run(capsys, "evaluate", workload_file, write(tmp_path, split, "split.json"))
    assert code == 0
    assert "shape: free" in out and "the placement is feasible" in out


def test_methods_are_listed(capsys: Captured) -> None:
    code, text, _ = run(capsys, "methods")
    assert code == 0 and all(name in text for name in METHODS)
    code, out, _ = run(capsys, "methods", "--format", "json")
    records = json.loads(out)
    assert json.loads(run(capsys, "methods", "dp", "--format", "json")[1]) == records[:1]
    assert code == 0 and [record["name"] for record in records] == list(METHODS)
    assert all(record["guarantee"] and record["objectives"] and record["splits"] for record in records)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["solve", "missing.json"], "missing.json: file: No such file or directory"),
        (["solve", "."], ".: folder: must hold a folder for each kind of device"),
        (["solve", "{workload}", "--gap", "7"], "gap = 7.0: must be a fraction"),
        (["solve", "{workload}", "--time-limit", "nan"], "time_limit = nan: must be a positive number"),
        (["solve", "{workload}", "--seed", "-1"], "seed = -1: must be an integer of at least 0"),
        (["solve", "{workload}", "--workers", "0"], "workers = 0: must be an integer"),
        (["solve", "{workload}", "--method", "dp", "--backend", "abacus"], "does not run on 'abacus'"),
        (["solve", "{workload}", "--method", "dp", "--objective", "latency"], "objective 'latency' is not"),
        (["evaluate", "{workload}", "missing.json"], "missing.json: file: No such file"),
        (
            ["evaluate", "{workload}", "{workload}"],
            "file: is neither a plan (it has no placement) nor a split",
        ),
    ],
)
def test_bad_input_exits_with_2(
    capsys: Captured, workload_file: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], text: str
) -> None:
    monkeypatch.chdir(workload_file.parent)
    code, out, err = run(capsys, *[argument.format(workload=workload_file) for argument in arguments])
    assert code == 2 and out == ""
    assert err.startswith("partitioner: ") and text in err


def test_a_plan_that_cannot_be_written_is_still_printed(
    capsys: Captured, workload_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long run is not lost for a folder that vanishes: the plan is printed, the exit code is 2."""
    monkeypatch.setattr(partitioner.cli.command_line, "check_writable", lambda path: None)
    monkeypatch.chdir(workload_file.parent)
    code, out, err = run(capsys, "solve", workload_file, "--format", "json", "--output", "missing/plan.json")
    assert code == 2 and json.loads(out)["status"] == "optimal"
    assert "missing/plan.json: cannot be written" in err


def test_a_broken_workload_names_every_flaw(capsys: Captured, tmp_path: Path) -> None:
    content = document()
    content["nodes"][0]["fpgaLatency"] = -1
    content["edges"][0]["destId"] = 77
    path = write(tmp_path, content)
    code, out, err = run(capsys, "solve", path, "--format", "json")
    assert code == 2 and out == ""
    assert f"{path}: node 1: fpgaLatency = -1.0: must be" in err
    assert f"{path}: edge 1 -> 77: destId = 77: is not the id of a node" in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["plan"],
        ["solve"],
        ["solve", "a.json", "b.json"],
        ["solve", "a.json", "--method", "magic"],
        ["solve", "a.json", "--objective", "profit"],
        ["solve", "a.json", "--split", "diagonal"],
        ["solve", "a.json", "--format", "xml"],
        ["solve", "a.json", "--seed", "x"],
        ["solve", "a.json", "--time-limit", "soon"],
        ["evaluate", "a.json"],
    ],
)
def test_wrong_usage_exits_with_2(capsys: Captured, arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    captured = capsys.readouterr()
    assert caught.value.code == 2 and captured.out == "" and "usage: partitioner" in captured.err


@pytest.mark.parametrize("command", [[], ["solve"], ["evaluate"], ["methods"]])
def test_help_exits_with_0(capsys: Captured, command: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    assert caught.value.code == 0 and "usage: partitioner" in capsys.readouterr().out


def test_an_infeasible_workload_exits_with_3(capsys: Captured, tmp_path: Path) -> None:
    code, out, err = run(capsys, "solve", small_workload(tmp_path, maxSizePerFPGA=4))
    assert code == 3 and out == ""
    why, lacks = err.splitlines()
    assert why == "partitioner: infeasible: memory: the nodes take 9 together, all devices hold 8"
    assert lacks == "the nearest plan found lacks 2B (2 bytes) of memory on each device of kind accelerator"


def test_no_plan_within_the_limits_exits_with_4(capsys: Captured, tmp_path: Path) -> None:
    """Two devices could hold the nodes, the baseline uses one."""
    path = small_workload(tmp_path, maxSizePerFPGA=6)
    code, out, err = run(capsys, "solve", path, "--method", "single_device")
    assert code == 4 and out == "" and err.startswith("partitioner: no plan found")
    assert run(capsys, "solve", path)[0] == 0


def test_an_interrupt_without_a_plan_exits_with_130(
    capsys: Captured, workload_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **options: object) -> Plan:
        raise KeyboardInterrupt

    monkeypatch.setattr(partitioner.cli.command_line, "solve", interrupted)
    code, out, err = run(capsys, "solve", workload_file)
    assert (code, out, err) == (130, "", "partitioner: interrupted before there was a plan\n")


def test_a_reader_may_leave_before_the_end() -> None:
    """``partitioner methods | head -1`` prints no traceback."""
    command = [sys.executable, "-m", "partitioner", "methods"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None and program.stderr is not None
        program.stdout.close()
        assert program.stderr.read() == b""
    assert program.returncode == 141


def test_the_module_is_the_program(workload_file: Path) -> None:
    """``python -m partitioner`` exits with the code and keeps the streams apart."""
    command = [sys.executable, "-m", "partitioner", "solve"]
    good = subprocess.run([*command, workload_file, "--format", "json"], capture_output=True, text=True)
    assert good.returncode == 0 and good.stderr == "" and json.loads(good.stdout)["status"] == "optimal"
    bad = subprocess.run([*command, "missing.json"], capture_output=True, text=True)
    assert bad.returncode == 2 and bad.stdout == "" and "missing.json" in bad.stderr


def test_evaluate_takes_the_pipeline_of_a_plan(capsys: Captured, workload_file: Path, tmp_path: Path) -> None:
    """Its replicas and its order; and the objective, schedule, batch and constraints of the options."""
    path = tmp_path / "plan.json"
    run(capsys, "solve", workload_file, "--output", path)
    all_on_one = dict.fromkeys(json.loads(path.read_text())["placement"], "accelerator0")
    replicas = {"replicas": {"accelerator0": ["accelerator1"]}, "stages": ["accelerator0"]}
    path.write_text(json.dumps({"placement": all_on_one, **replicas}))
    piped = ("--objective", "batch", "--microbatches", 4, "--schedule", "1f1b")
    options = (*piped, "--memory", 3000, "--format", "json")
    record = json.loads(run(capsys, "evaluate", workload_file, path, *options)[1])
    assert (record["value"], record["feasible"]) == (15.5 / 2 * 4, True)
    record = json.loads(run(capsys, "evaluate", workload_file, path, *options, "--stages", 2)[1])
    assert record["violations"] == ["the number of stages is 1, it must be 2"]
    split = all_on_one | {"4": "accelerator1"}
    path.write_text(json.dumps({"placement": split, "stages": ["accelerator1", "accelerator0"]}))
    _, out, _ = run(capsys, "evaluate", workload_file, path, "--schedule", "1f1b")
    assert "broken: accelerator0 comes after accelerator1 in the order" in out


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "{w}", "--output", "{f}/no/plan.json"),
        ("simulate", "{w}", "{p}", "--microbatches", "4", "--output", "{f}/no/t.json"),
        ("simulate", "{w}", "{p}", "--microbatches", "4", "--trace", "{f}/no/t.json"),
        ("simulate", "{w}", "{p}", "--microbatches", "4", "--csv", "{f}/no/t.csv"),
        ("plot", "{w}", "{p}", "--output", "{f}/no/p.svg"),
        ("solve", "{w}", "--output", "{f}"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_anything_is_read(
    capsys: Captured, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The workload and the plan do not even exist."""
    given = {"w": tmp_path / "missing.json", "p": tmp_path / "missing_plan.json", "f": tmp_path}
    code, out, err = run(capsys, *(word.format(**given) for word in words))
    assert (code, out) == (2, "") and ": cannot be written: " in err and err.count("\n") == 1


def test_a_mistyped_command_gets_the_similar_one(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["slove", "workload.json"])
    assert caught.value.code == 2
    assert "did you mean 'solve'?" in capsys.readouterr().err
