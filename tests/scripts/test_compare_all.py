"""The comparison over many workloads: one column a workload, the same values as `solve`, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from compare_all import main

import partitioner as pt
from tests.instances import write

NODE = {"supportedOnFpga": 1, "cpuLatency": 9, "isBackwardNode": 0, "size": 3}


def workloads(folder: Path) -> Path:
    """Three nodes in a row that fit one device, and five that do not; and an index, which is no workload."""
    folder.mkdir(exist_ok=True)
    for name, count in (("small", 3), ("wide", 5)):
        nodes = [{"id": i, "fpgaLatency": 1 + i, **NODE} for i in range(count)]
        edges = [{"sourceId": i, "destId": i + 1, "cost": 0.25} for i in range(count - 1)]
        content = {"maxSizePerFPGA": 9, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}
        write(folder, content, f"{name}.json")
    write(folder, {}, "index.json")
    return folder


def grids(out: str) -> list[list[list[str]]]:
    """For every table its columns, one a method: its name, its split, a cell a workload; first the names."""
    tables = [part.splitlines() for part in out.split("\n\n") if part.startswith("|")]
    cells = [[[cell.strip() for cell in line.strip("|").split("|")] for line in table] for table in tables]
    columns = [list(zip(table[0], *table[2:], strict=True)) for table in cells]
    return [
        [["method", "split", *names], *([*title.strip(")").split(" ("), *column] for title, *column in rest)]
        for (_, *names), *rest in columns
    ]


def test_tables_hold_what_solve_finds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = workloads(tmp_path)
    code = main([str(folder), "--methods", "single_device,dp,local_search_baseline"])
    values, gaps = grids(capsys.readouterr().out)
    assert code == 0 and values[0] == gaps[0] == ["method", "split", "small", "wide"]
    assert {tuple(row[:2]) for row in values[1:]} == {
        ("dp", "chain"),
        ("local_search_baseline", "free"),
        ("single_device", "chain"),
    }
    assert values[-1] == ["single_device", "chain", "6.00", "-"]
    for row in values[1:-1]:
        for name, cell in zip(("small", "wide"), row[2:], strict=True):
            workload = pt.load(folder / f"{name}.json")
            plan = pt.solve(workload.graph, workload.devices, method=row[0], split=row[1])
            assert cell == f"{plan.value:.2f}"
    dp = next(row for row in gaps if row[0] == "dp")
    assert dp[2:] == ["0.00%", "0.00%"]


def test_without_cpus_only_accelerators_are_used(capsys: pytest.CaptureFixture[str]) -> None:
    """The bound of BERT-24 rises when a CPU is taken away."""
    words = ["instances/bert24_training.json", "--methods", "dp"]
    found = []
    for more in ([], ["--no-cpus"]):
        main([*words, *more])
        found.append(float(grids(capsys.readouterr().out)[0][1][2]))
    assert found[0] < found[1]


def test_files_of_one_name_keep_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = [str(workloads(tmp_path / name)) for name in ("a", "b")]
    main([*folders, "--methods", "single_device"])
    assert grids(capsys.readouterr().out)[0][0][2:] == ["a/small", "a/wide", "b/small", "b/wide"]


def test_reasons_stand_below(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([str(workloads(tmp_path) / "wide.json"), "--methods", "single_device,dp"])
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert last.startswith("- wide, single_device, chain: no plan found")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere"),
        (["."], "no workload there"),
        (["wide.json", "--methods", "magic"], "method = 'magic': must be one of"),
    ],
)
def test_bad_input_is_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    workloads(tmp_path / "full")
    monkeypatch.chdir(tmp_path)
    code = main([words[0] if words[0] != "wide.json" else str(tmp_path / "full" / "wide.json"), *words[1:]])
    assert code == 2 and message in capsys.readouterr().err
