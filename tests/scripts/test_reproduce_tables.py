"""The published tables: files are found in both layouts, verdicts are right, outputs can be read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from paper_tables.partitioners import SCOTCH
from paper_tables.published import read_published
from paper_tables.sources import find_sources
from paper_tables.tables import PIPEDREAM
from paper_tables.verdict import against_program, is_printed, last_digit, must_agree, smaller_is_better
from paper_tables.writing import as_text
from reproduce_tables import main, reproduce

from tests.methods.baselines.graph_partitioning.programs import DEALING, stand_in

TABLE_1 = {
    "nodes": 3,
    "ideals": 4,
    "paper_dp_runtime": "0s",
    "contiguous": 3.5,
    "dp_cpp_value": 3.5,
    "dpl": 3.5,
    "pipedream": 3.5,
    "expert": 4.5,
    "single_accelerator": 6.0,
}


def node(number: int, time: float, **more: Any) -> dict[str, Any]:
    base = {"id": number, "supportedOnFpga": True, "cpuLatency": 100.0, "fpgaLatency": time}
    return {**base, "isBackwardNode": False, "colorClass": number, "size": 1.0, **more}


def chain(**more: Any) -> dict[str, Any]:
    """Times 3, 1, 2, transfers 0.5, two accelerators: 3 | 1 2 gives 3.5, 3 1 | 2 gives 4.5."""
    nodes = [node(number, time, **more) for number, time in enumerate((3.0, 1.0, 2.0))]
    edges = [{"sourceId": u, "destId": u + 1, "cost": 0.5} for u in (0, 1)]
    return {"maxSizePerFPGA": 5.0, "maxFPGAs": 2, "maxCPUs": 0, "nodes": nodes, "edges": edges}


def training() -> dict[str, Any]:
    """The chain and a backward node of the same colour for each node, of its time."""
    workload = chain()
    workload["nodes"] += [
        node(number + 3, time, isBackwardNode=True, colorClass=number)
        for number, time in enumerate((3.0, 1.0, 2.0))
    ]
    workload["edges"] += [{"sourceId": u + 3, "destId": u + 2, "cost": 0.5} for u in (1, 2)]
    return workload


def layered() -> dict[str, Any]:
    """The chain with its first two nodes in one layer: only 3 1 | 2 is left, 4.5."""
    workload = chain(layerId=1)
    workload["nodes"][2]["layerId"] = 2
    return workload


EXPERT = {"fpgas": [{"nodes": [0, 1]}, {"nodes": [2]}], "cpus": []}
FLAT = {
    "throughput/bert3_inference.json": layered(),
    "throughput/resnet50_operator_inference.json": chain(),
    "throughput/resnet50_layer_inference.json": chain(),
    "throughput/resnet50_layer_training.json": training(),
    "experts/resnet50_layer_inference.json": EXPERT,
}
PUBLIC = {
    "throughput-inputs/OperatorGraphs/bert_l-3_inference.json": layered(),
    "throughput-inputs/OperatorGraphs/resnet50_inference.json": chain(),
    "throughput-inputs/LayerGraphs/resnet50_inference.json": chain(),
    "throughput-inputs/LayerGraphs/resnet50_training.json": training(),
    "human-experts/resnet50_inference_expert.json": EXPERT,
}


def write_all(folder: Path, files: Mapping[str, Any]) -> Path:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return folder


def reference(folder: Path, **changes: Any) -> Path:
    """Published values of the layer graph for inference, and of Table 3."""
    row = {"workload": "resnet50_layer_inference", **TABLE_1, **changes}
    rows3 = [{"workload": "bert3_inference", "operator": 3.5, "layer": 4.5}]
    return write_all(folder, {"table1.json": {"rows": [row]}, "table3.json": {"rows": rows3}})


@pytest.fixture(params=[FLAT, PUBLIC], ids=["flat", "public"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same four workloads in either layout."""
    return write_all(tmp_path / "workloads", request.param)


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = main([str(word) for word in words])
    return code, capsys.readouterr().out


def test_both_layouts_hold_the_same_workloads_and_experts(folder: Path) -> None:
    sources = {source.entry.name: source for source in find_sources(folder)}
    assert list(sources) == [
        "bert3_inference",
        "resnet50_operator_inference",
        "resnet50_layer_inference",
        "resnet50_layer_training",
    ]
    inference, training = sources["resnet50_layer_inference"], sources["resnet50_layer_training"]
    assert inference.expert is not None and inference.expert == training.expert
    assert sources["resnet50_operator_inference"].expert is None


def test_values_as_published_are_good(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = printed(capsys, folder, "--reference", reference(tmp_path / "printed"), "--format", "json")
    answer = json.loads(out)
    tables = {
        table["number"]: {row["workload"]: row["cells"] for row in table["rows"]}
        for table in answer["tables"]
    }
    assert code == 0 and answer["good"]
    first = tables[1]["resnet50_layer_inference"]
    compared = {name for name, cell in first.items() if cell["verdict"] == "="}
    assert compared == {"nodes", "ideals", "DP", "DPL", "expert", "single"}
    baseline = tables[PIPEDREAM]
    assert list(baseline) == ["resnet50_layer_inference", "resnet50_layer_training"]
    assert baseline["resnet50_layer_inference"]["PipeDream"] == {
        "ours": 3.5,
        "published": 3.5,
        "verdict": "=",
    }
    assert baseline["resnet50_layer_training"]["PipeDream"]["ours"] == 7.0
    assert tables[1]["resnet50_layer_training"]["expert"]["ours"] == 9.0
    assert tables[2]["resnet50_layer_inference"]["single"]["ours"] == pytest.approx(3.5 / 6)
    assert tables[3]["bert3_inference"]["layers"] == {"ours": 4.5, "published": 4.5, "verdict": "="}
    assert tables[3]["resnet50_operator_inference"]["layers"]["ours"] is None


@pytest.mark.parametrize(
    ("changes", "column", "verdict", "expected"),
    [
        ({"contiguous": 3.6}, "DP", "better", 0),
        ({"contiguous": 3.4, "dpl": 3.4}, "DP", "worse", 1),
        ({"dp_cpp_value": 3.499}, "DP", "worse", 1),
        ({"dp_cpp_value": 3.501}, "DP", "better", 0),
        ({"dpl": 3.9}, "DPL", "better", 0),
        ({"dpl": 3.4}, "DPL", "worse", 1),
        ({"pipedream": 3.4}, "PipeDream", "differs", 1),
        ({"expert": 5.0}, "expert", "differs", 1),
        ({"ideals": 5}, "ideals", "differs", 1),
        ({"single_accelerator": 6.0001}, "single", "differs", 1),
    ],
)
def test_exit_code_follows_the_verdicts(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    column: str,
    verdict: str,
    expected: int,
) -> None:
    folder = write_all(tmp_path / "workloads", FLAT)
    given = reference(tmp_path / "printed", **changes)
    words = ("--only", "resnet50_layer_inference", "--tables", "1,2", "--format", "json")
    code, out = printed(capsys, folder, "--reference", given, *words)
    first, second, *_ = (table["rows"][0]["cells"] for table in json.loads(out)["tables"])
    assert (second | first)[column]["verdict"] == verdict
    assert code == expected


def test_scotch_stands_beside_the_printed_value_without_a_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in deals nodes 0 and 2 to one accelerator: 5 and two tensors, in 4 of memory."""
    workload = chain() | {"maxSizePerFPGA": 4.0}
    for each, size in zip(workload["nodes"], (3.0, 1.0, 2.0), strict=True):
        each["size"] = size
    folder = write_all(tmp_path / "workloads", FLAT | {"throughput/resnet50_layer_inference.json": workload})
    words = ("--only", "resnet50_layer_inference", "--tables", "1", "--format", "json")
    given = reference(tmp_path / "printed", scotch=4.5)
    stand_in(DEALING, tmp_path, monkeypatch)
    code, out = printed(capsys, folder, "--reference", given, *words)
    table = json.loads(out)["tables"][2]
    cells = table["rows"][0]["cells"]
    assert code == 0 and table["number"] == SCOTCH
    assert cells["Scotch"] == {"ours": 6.0, "published": 4.5, "verdict": "-"}
    assert cells["memory"]["ours"] == 1.25 and "Scotch 0.1, seed 0, imbalance 0.05" in table["notes"][0]
    assert table["notes"][1] == "resnet50_layer_inference: Scotch's parts break a rule."
    monkeypatch.setenv("PATH", "")
    code, out = printed(capsys, folder, "--reference", given, *words)
    table = json.loads(out)["tables"][2]
    assert code == 0 and table["rows"][0]["cells"]["Scotch"]["ours"] is None
    assert "apt-get install scotch" in table["notes"][0]


def test_without_published_values_only_ours_are_printed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out = printed(capsys, folder, "--tables", "1")
    assert code == 0
    assert "3.50" in out and "4.50" in out
    assert "paper" not in out and "worse" not in out
    assert "resnet50_layer_training: single breaks the memory limit." in out


def test_markdown_rows_have_as_many_cells_as_columns(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = reference(tmp_path / "printed")
    _, out = printed(capsys, folder, "--reference", given, "--format", "markdown")
    grids = [part.splitlines() for part in out.split("\n\n") if part.startswith("|")]
    assert [len(grid) for grid in grids] == [6, 4, 6, 6, 4]
    assert all(len({line.count("|") for line in grid}) == 1 for grid in grids)
    assert "| 3.50 = | 3.50 |" in out


def test_text_has_a_line_for_the_paper_only_where_there_is_one(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = reference(tmp_path / "printed")
    _, out = printed(capsys, folder, "--reference", given, "--tables", "1")
    lines = [line for line in out.splitlines() if line.split()[:1] == ["paper"]]
    assert len(lines) == 3  # one of the two layer graphs, in Table 1 and in both of its continuations
    assert "layer graphs, training" in out.splitlines()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("folder", "seconds", "gap_below"),
    [
        (FLAT, 2, 1.0),
        (FLAT, 20, 0.01 + 1e-9),
        (PUBLIC, 20, 0.01 + 1e-9),
    ],
    indirect=["folder"],
)
def test_table_1_goes_on_with_integer_programs(
    folder: Path, seconds: int, gap_below: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three nodes: every split is 3 | 1 2, or 3 1 | 2 where it says so; the paper's values stand beside.

    A search uses all of its time; within 20 s the gap of the integer program is closed on any machine.
    """
    changes = {"noncontiguous": 3.6, "local_search": 4.0, "paper_ip_noncontiguous_runtime": ">20m (3s*)"}
    given = reference(tmp_path / "printed", **changes)
    words = ("--only", "resnet50_layer_inference", "--tables", "1", "--ip", "--time-limit", seconds)
    code, out = printed(capsys, folder, "--reference", given, *words, "--format", "json")
    first, _, _, second = json.loads(out)["tables"]
    assert (code, first["number"], second["number"]) == (0, 1, "1 continued")
    cells = second["rows"][0]["cells"]
    found = {name: (cell["ours"], cell["published"], cell["verdict"]) for name, cell in cells.items()}
    assert found["convex"] == (3.5, 3.5, "=")
    assert found["free"] == (3.5, 3.6, "better")
    assert found["search"] == (3.5, 4.0, "better")
    assert found["baseline"][0] >= 3.5
    assert found["free s"][1] == ">20m (3s*)" and found["free s"][0] > 0
    assert 0 <= found["free gap"][0] < gap_below
    assert isinstance(found["free by"][0], str)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [FLAT, PUBLIC], indirect=True)
def test_objectives_are_compared_on_training_workloads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chain and its backward twin, which both objectives split alike; inference has no row."""
    words = ("--tables", "1", "--gpipe", "--time-limit", "5", "--gap", "0")
    _, out = printed(capsys, folder, *words, "--format", "json")
    table = json.loads(out)["tables"][-1]
    assert table["number"] == "GPipe"
    (row,) = table["rows"]
    assert row["workload"] == "resnet50_layer_training"
    ours = {name: cell["ours"] for name, cell in row["cells"].items()}
    for split in ("convex", "free"):
        assert ours[f"{split} T"] == ours[f"{split} G"] == 7.0
        assert ours[f"{split} loss"] == 0.0
        assert ours[f"{split} most"] == pytest.approx(0.0, abs=1e-5)


def test_a_table_without_rows_is_left_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Table 3 is about operator graphs, GPipe's about training."""
    words = ("--only", "resnet50_layer_inference", "--tables", "1,3", "--gpipe")
    code, out = printed(capsys, folder, *words, "--format", "json")
    assert code == 0
    assert [table["number"] for table in json.loads(out)["tables"]] == [1, PIPEDREAM, SCOTCH]
    code, out = printed(capsys, folder, *words)
    assert "Table 3" not in out and "GPipe" not in out


@pytest.mark.parametrize(
    "words", [["nowhere"], ["workloads", "--only", "gnmt_training"], ["workloads", "--reference", "nowhere"]]
)
def test_missing_files_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    write_all(tmp_path / "workloads", FLAT)
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    assert "no such" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--tables", "4"], ["--tables", "x"], ["--only", "alexnet"]])
def test_bad_usage(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2


def test_published_values_may_be_rounded_or_cut_off() -> None:
    assert is_printed(159.4375, 159.43, 0.01) and is_printed(159.4375, 159.44, 0.01)
    assert not is_printed(159.4375, 159.42, 0.01) and not is_printed(159.4375, 159.45, 0.01)
    assert smaller_is_better(27.9186, 27.92) == "="
    assert smaller_is_better(27.93, 27.92) == "worse"
    assert smaller_is_better(27.91, 27.92) == "better"
    assert smaller_is_better(None, 27.92) == smaller_is_better(27.92, None) == "-"
    assert must_agree(4, 3, unit=1) == must_agree(2, 3, unit=1) == "differs"
    assert last_digit(1891.74) == pytest.approx(0.01)
    assert against_program(51.5519, None) == "-"
    assert against_program(51.5518636, 51.5519) == "="


def test_reference_files_may_be_missing(tmp_path: Path) -> None:
    assert read_published(tmp_path).table1 == {}


@pytest.mark.slow
def test_the_published_tables_are_reproduced(published: Path) -> None:
    """Every published cell is reached, except for one and for layers that the files do not give."""
    given = published.parent / "reference"
    if not given.is_dir():
        pytest.skip(f"the published tables are not here: no folder {given}")
    tables = reproduce(find_sources(published), read_published(given), (1, PIPEDREAM, 2, 3))
    cells = [
        ((table.number, row.entry.name, name), cell)
        for table in tables
        for row in table.rows
        for name, cell in row.cells.items()
    ]
    assert [place for place, cell in cells if not cell.good] == [
        (PIPEDREAM, "resnet50_layer_inference", "PipeDream")
    ]
    open_cells = [place for place, cell in cells if cell.published is not None and cell.ours is None]
    assert {(number, name) for number, _, name in open_cells} == {(3, "layers"), (3, "gain")}
    assert not any("bert12" in workload for _, workload, _ in open_cells)
    assert [len(table.rows) for table in tables] == [16, 8, 16, 8]
    assert max(map(len, as_text(tables, 80).splitlines())) <= 80


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", ["latency/bert3_inference.json", "latency-inputs/OperatorGraphs/bert_l-3_inference.json"]
)
def test_table_4_compares_latencies(path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Greedy, max-load and our best plan of a workload for latency, in either layout, with its gap."""
    write_all(tmp_path, {path: chain()})
    row = {"workload": "bert3_inference", "greedy": 6.0, "ip": 5.0, "ip_mip_gap": "<1%"}
    given = write_all(tmp_path / "printed", {"table4.json": {"rows": [row]}})
    words = ("--tables", "", "--latency", "--time-limit", 5, "--format", "json")
    _, out = printed(capsys, tmp_path, *words, "--reference", given)
    (table,) = json.loads(out)["tables"]
    cells = table["rows"][0]["cells"]
    assert table["number"] == 4
    assert cells["IP"]["ours"] <= min(cells[name]["ours"] for name in ("greedy", "max-load", "sum DP"))
    assert cells["IP"]["published"] == 5.0 and cells["gap"] == {
        "ours": 0.0,
        "published": "<1%",
        "verdict": "-",
    }
    assert cells["q=2"]["ours"] <= cells["IP"]["ours"]
