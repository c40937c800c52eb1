"""The benchmark of splits: which runs it does, what it keeps of them, how it compares with the paper."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench_ip import main
from ip_bench.runs import Limits, Run, Task, can_run, run, settings
from ip_bench.store import append_run, read_runs
from ip_bench.writing import as_json, as_markdown, as_text

LIMITS = Limits(60.0, 0.01, 0, 1, "throughput")
BEST = 3.5


def write_chain(folder: Path, name: str = "chain") -> Path:
    """Times 3, 1, 2, transfers 0.5, two accelerators; the best split is 3 | 1 2 with load 3.5."""
    base = {"supportedOnFpga": True, "cpuLatency": 9.0, "isBackwardNode": False, "size": 1.0}
    nodes = [{"id": i, "fpgaLatency": time, **base} for i, time in enumerate((3.0, 1.0, 2.0))]
    edges = [{"sourceId": u, "destId": u + 1, "cost": 0.5} for u in (0, 1)]
    path = folder / "workloads" / "throughput" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"maxSizePerFPGA": 9.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.fixture
def chain_file(tmp_path: Path) -> Path:
    """A workload in the folders where published values are looked for beside it."""
    reference = tmp_path / "reference"
    reference.mkdir()
    row = {"workload": "chain", "contiguous": 3.5, "noncontiguous": 3.6, "local_search": 4.0}
    (reference / "table1.json").write_text(json.dumps({"rows": [row]}), encoding="utf-8")
    return write_chain(tmp_path)


def done(setting: str, split: str = "free", workload: str = "chain", **figures: object) -> Run:
    """A run with value 3.5 and bound 3.4, unless told otherwise."""
    task = Task(workload, split, setting, LIMITS)
    return replace(Run(task, 3.5, 3.4, 2.0, "gap", "scip", "scip: OPTIMAL"), **figures)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", ["auto", "scip", "local_search", "local_search_baseline"])
def test_a_run_of_each_sort(chain_file: Path, setting: str) -> None:
    """Every setting finds the best split of three nodes; bounds are below it."""
    found = run(Task("chain", "free", setting, replace(LIMITS, time_limit=2.0)), chain_file)
    assert found.failure == "" and found.value == BEST
    assert found.bound is not None and found.bound <= BEST
    assert found.seconds is not None and found.seconds > 0
    assert found.stop_reason != "" and found.backend != ""


def test_what_cannot_be_solved_is_a_run_that_failed(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text("{}", encoding="utf-8")
    found = run(Task("broken", "free", "auto", LIMITS), path)
    assert found.value is None and found.gap is None and not found.proven
    assert "maxFPGAs" in found.failure


def test_gaps_and_proofs() -> None:
    assert done("auto").gap == pytest.approx(0.1 / 3.5) and not done("auto").proven
    assert done("auto", bound=3.47).proven
    assert done("auto", value=0.0, bound=0.0).gap == 0.0


def test_settings_and_their_splits() -> None:
    assert {"auto", "local_search", "local_search_baseline", "highs", "scip", "cbc"} <= set(settings())
    assert can_run("scip", "convex") and can_run("auto", "free")
    assert not can_run("local_search_baseline", "convex")


def test_runs_are_read_as_they_were_written(tmp_path: Path) -> None:
    """The last run of a task counts; a line that is no run is named."""
    path = tmp_path / "runs.jsonl"
    assert read_runs(path) == {}
    runs = [done("auto"), done("scip", value=None, failure="no plan"), done("auto", value=3.45)]
    for each in runs:
        append_run(path, each)
    assert list(read_runs(path).values()) == [runs[2], runs[1]]
    path.write_text(path.read_text(encoding="utf-8") + '{"task": 1}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="line 4 is no run"):
        read_runs(path)


def test_finished_runs_are_not_repeated(
    tmp_path: Path, chain_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the file holds is taken from it, even a value that no solver would give."""
    path = tmp_path / "runs.jsonl"
    limits = Limits(20.0, 0.01, 0, 1, "throughput")
    append_run(path, replace(done("highs"), task=Task("chain", "free", "highs", limits), value=99.0))
    words = [str(chain_file), "--backends", "highs,scip", "--splits", "free", "--time-limit", "20"]
    assert main([*words, "--workers", "1", "--output", str(path), "--format", "json"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [record["value"] for record in printed] == [99.0, BEST]
    assert [each.value for each in read_runs(path).values()] == [99.0, BEST]


@pytest.mark.slow
def test_the_paper_is_found_beside_the_workloads(
    chain_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(chain_file), "--backends", "local_search,local_search_baseline", "--time-limit", "1"]
    assert main([*words, "--format", "markdown"]) == 0
    rows = [
        line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("| chain")
    ]
    ends = [[cell.strip() for cell in (row[1], row[2], row[-2], row[-1])] for row in rows]
    assert ends == [
        ["convex", "local_search", "3.500", "="],
        ["free", "local_search", "3.600", "better"],
        ["free", "local_search_baseline", "4.000", "better"],
    ]


def test_files_and_words_that_are_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing.json")]) == 2
    assert "no such file" in capsys.readouterr().err
    for words in (["--backends", "cplex"], ["--splits", "chain"]):
        with pytest.raises(SystemExit) as stopped:
            main(["file.json", *words])
        assert stopped.value.code == 2
    assert "choose from all, convex, free" in capsys.readouterr().err


def test_an_interruption_ends_the_benchmark(
    chain_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is done is printed, the rest is left."""

    def interrupted(task: Task, file: Path) -> Run:
        if task.split == "free":
            raise KeyboardInterrupt
        return replace(done("auto"), task=task)

    monkeypatch.setattr("bench_ip.run", interrupted)
    assert main([str(chain_file), "--backends", "auto", "--format", "json"]) == 130
    assert [json.loads(line)["task"]["split"] for line in capsys.readouterr().out.splitlines()] == ["convex"]


def test_tables_and_totals() -> None:
    """A line a run, a line a setting; failures are told in words."""
    runs = [
        done("auto", bound=3.5),
        done("auto", "convex", value=3.7),
        done("cbc", value=None, bound=None, seconds=None, failure="no plan found (time_limit)"),
    ]
    published = {"chain": {"contiguous": 3.5, "noncontiguous": 3.6}}
    lines = as_markdown(runs, published).splitlines()
    assert "| chain | free | auto | 3.500 | 3.500 | 0.00% | 2.0 | gap | scip | 3.600 | better |" in lines
    assert "| chain | convex | auto | 3.700 | 3.400 | 8.11% | 2.0 | gap | scip | 3.500 | worse |" in lines
    assert "| chain | free | cbc | - | - | - | - | failed | - | 3.600 | - |" in lines
    assert "| auto | 2 | 2 | 1 | 1 | 4 |" in lines
    assert "chain, free, cbc: no plan found (time_limit)" in lines
    assert "Objective throughput, at most 60 s a run, until a gap of 1.00%, seed 0, 1 cores." in as_text(
        runs, published
    )
    assert len(as_json(runs, published).splitlines()) == 3
