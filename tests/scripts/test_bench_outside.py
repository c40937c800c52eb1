"""The benchmark of outside instances: what it reads, what it selects, and how it judges values and bounds."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from bench_outside import FOLDER, main
from outside_bench.cases import SETS, Case
from outside_bench.runs import Run, run
from outside_bench.task_files import random_workers
from outside_bench.writing import as_markdown, as_text, summary

from tests.instances import document

SOUND = Run("T", "a 1", low=10.0, high=10.0, value=10.0, bound=10.0, seconds=1.0, stop_reason="optimal")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The layout of the benchmarks with one tiny instance of each set."""
    texts = {
        "benchmarks/salbp/TINY.IN2": "3\n4\n3\n2\n1,2\n1,3\n-1,-1\n* Knoten f\xfcnf\n",
        "benchmarks/salbp/graphs.csv": "file,tasks,edges,sum,max,ideals(cap 3e6)\nTINY,3,2,9,4,5\n",
        "benchmarks/salbp/salbp2_optima.csv": "graph,file,stations,c_low,c_high,note\nTiny,TINY,2,5,5,\n",
        "benchmarks/alwabp/tiny/1": "2\n1 Inf\n5 3\n1 2\n-1 -1\n",
        "benchmarks/alwabp/instances.csv": '"name","num","LB","UB"\n"tiny",1,3,3\n',
        "benchmarks/makespan/task_graphs.jsonl": json.dumps(
            {"name": "pair", "processors": 2, "length": 3, "weights": [1, 2], "edges": [[0, 1, 5]]}
        ),
        "workloads/branching/wide.json": json.dumps(document()),
    }
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="latin-1")
    return tmp_path / "benchmarks"


def case_of(name: str, folder: Path) -> Case:
    (case,) = SETS[name](folder)
    return case


def test_files_are_read_as_they_are_meant(folder: Path) -> None:
    line = case_of("salbp", folder).load()
    assert line.graph.time.tolist() == [[4.0, 3.0, 2.0]] and line.graph.edges.tolist() == [[0, 1], [0, 2]]
    assert line.devices.kinds[0].count == 2
    workers = case_of("alwabp", folder).load()
    assert workers.graph.allowed.tolist() == [[True, True], [False, True]]
    assert [kind.count for kind in workers.devices.kinds] == [1, 1]
    assert workers.graph.edges.tolist() == [[0, 1]]
    file = folder / "salbp" / "TINY.IN2"
    low, high = (random_workers(file, 5, unlike, 0.5, seed=1).graph for unlike in (False, True))
    assert (low.time <= [4.0, 3.0, 2.0]).all() and (low.time >= 1).all()
    assert (high.time <= [12.0, 9.0, 6.0]).all() and (high.time >= [4.0, 3.0, 2.0]).all()
    assert low.allowed.any(axis=0).all() and not low.allowed.all()
    assert high.edges.tolist() == line.graph.edges.tolist()
    tasks = case_of("makespan", folder).load()
    assert tasks.graph.cost.tolist() == [5.0]


@pytest.mark.parametrize(("name", "optimum"), [("alwabp", 3.0), ("makespan", 3.0)])
def test_a_run_reaches_the_known_optimum(folder: Path, name: str, optimum: float) -> None:
    found = run(case_of(name, folder), limit=20.0)
    assert (found.value, found.low, found.wrong, found.reached) == (optimum, optimum, False, True)


def test_one_table_for_each_set_and_one_line_of_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--sets", "alwabp", "branching", "--folder", str(folder), "--limit", "20"]
    assert main([*arguments, "--format", "markdown"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("**")] == ["**ALWABP-2, tiny**", "**Wide branchings**"]
    firsts = [line.split(" | ")[0] for line in lines if line.startswith("| ")]
    assert firsts == ["| instance", "| :--", "| tiny 1", "| instance", "| :--", "| wide"]
    assert lines[-1].startswith("All: 2 instances; 0 without a plan; 1 at the best known value")


def test_parts_are_selected(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--folder", str(folder), "--format", "json"]
    assert main(["--only", "TINY*", *arguments]) == 0
    (record,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert record["name"] == "TINY 2" and record["value"] == record["bound"] == 5.0
    assert main(["--sets", "salbp", "--only", "no such", *arguments]) == 2
    assert capsys.readouterr().err == "bench_outside: --only no such: matches none of 1 names (salbp)\n"


def test_a_missing_folder_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--folder", str(tmp_path)]) == 2
    assert "graphs.csv" in capsys.readouterr().err


def test_values_below_and_bounds_above_the_optimum_are_wrong() -> None:
    assert not SOUND.wrong and SOUND.reached
    assert replace(SOUND, value=9.9).wrong
    assert replace(SOUND, bound=10.1).wrong
    open_case = replace(SOUND, low=8.0, value=9.0, bound=7.0)
    assert not open_case.wrong and open_case.reached
    assert not replace(SOUND, low=float("nan"), high=float("nan"), value=3.0).wrong
    assert "WRONG" in as_text([replace(SOUND, value=9.9)])


def test_the_summary_has_means_and_worst() -> None:
    worse = replace(SOUND, name="a 2", value=12.0, seconds=3.0, stop_reason="time_limit")
    failed = Run("T", "a 3", 1.0, 2.0, failure="no plan")
    assert summary([SOUND, worse, failed]) == (
        "3 instances; 1 without a plan; 1 at the best known value; excess 10.00% (worst 20.00%); 1 proven; "
        "gap 8.33% (worst 16.67%); 4.0 s, longest 3.0 s; 0 wrong"
    )
    assert "| a 3 | - | - | - | 1 to 2 | - | - | no plan |" in as_markdown([failed])


def test_all_instances_of_the_shared_folder_are_found() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"the outside benchmarks are not here: no folder {FOLDER}")
    cases = {name: list(read(FOLDER)) for name, read in SETS.items()}
    counts = {name: len(found) for name, found in cases.items()}
    assert counts == {"salbp": 302, "alwabp": 160, "workers": 16, "makespan": 263, "branching": 12}
    assert all(len({case.name for case in found}) == len(found) for found in cases.values())
    assert sum("at most" in case.table for case in cases["salbp"]) == 139
