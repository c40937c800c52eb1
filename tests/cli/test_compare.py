"""The command compare: a table or one JSON object, options that reach the methods, exit codes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from partitioner import load_plan
from tests.cli.test_command_line import Captured, run, small_workload


def test_text_and_json_say_the_same(capsys: Captured, tmp_path: Path) -> None:
    path = small_workload(tmp_path)
    words = ("compare", path, "--methods", "dp, single_device,local_search_baseline", "--time-limit", "30")
    code, out, err = run(capsys, *words)
    assert code == 0 and err == "" and out.startswith("throughput: 2.25 per sample by ")
    code, out, err = run(capsys, *words, "--format", "json")
    record = json.loads(out)
    assert code == 0 and err == "" and record["time_limit"] == 30.0
    assert {row["method"]: row["value"] for row in record["methods"]} == {
        "dp": 2.25,
        "local_search_baseline": 2.25,
        "single_device": 3.0,
    }


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--methods", "magic"), 2, "method = 'magic': must be one of"),
        (("--methods", ","), 2, "no method is named"),
        (("--time-limit", "-1"), 2, "time_limit = -1"),
        (("--methods", "dp,single_device", "--memory", "4"), 3, "infeasible: "),
        (("--methods", "single_device", "--memory", "8"), 4, "no method found a plan"),
        (("--methods", "greedy"), 4, "no method found a plan"),
        (("--methods", "dp", "--backend", "scip"), 2, "backend = 'scip': no method compared runs on it"),
        (("--methods", "dp", "--gap", "1"), 2, "gap = 1.0: must be a fraction"),
        (("--methods", "dp", "--orders", "0"), 2, "orders = 0"),
    ],
)
def test_exit_codes(
    capsys: Captured, tmp_path: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    found, _, err = run(capsys, "compare", small_workload(tmp_path), *words)
    assert found == code and message in err


def test_contention_reaches_the_methods(capsys: Captured, tmp_path: Path) -> None:
    """One node feeds two others elsewhere; with one channel the second tensor waits."""
    nodes = [
        {"id": i, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1, "isBackwardNode": 0, "size": 3}
        for i in range(4)
    ]
    edges = [{"sourceId": u, "destId": v, "cost": 2} for u, v in ((0, 2), (1, 3), (0, 3), (1, 2))]
    path = small_workload(tmp_path, nodes=nodes, edges=edges, maxSizePerFPGA=6)
    words = ("compare", path, "--objective", "makespan", "--methods", "heft", "--format", "json")
    plain = json.loads(run(capsys, *words)[1])["methods"][0]
    crowded = json.loads(run(capsys, *words, "--contention")[1])["methods"][0]
    assert plain["value"] < crowded["value"]


def test_options_of_solve_reach_the_methods(capsys: Captured, tmp_path: Path) -> None:
    """A gap ends them early; a solver is only for those that run on it; the best plan is written."""
    output = tmp_path / "plan.json"
    words = ("compare", small_workload(tmp_path), "--methods", "dp,ip", "--split", "free", "--deterministic")
    options = ("--gap", "0.75", "--backend", "scip", "--seed", "3", "--output", output, "--format", "json")
    code, out, _ = run(capsys, *words, *options)
    rows = {row["method"]: row for row in json.loads(out)["methods"]}
    plan = load_plan(output)
    assert code == 0 and rows["ip"]["stop_reason"] == "gap" and rows["dp"]["reason"]
    assert (plan.method, plan.seed, plan.value) == ("ip", 3, rows["ip"]["value"])
    assert plan.options["deterministic"] is True


def test_no_plan_is_written_where_the_output_cannot_be(capsys: Captured, tmp_path: Path) -> None:
    """That is known before any method runs."""
    code, out, err = run(
        capsys, "compare", small_workload(tmp_path), "--output", tmp_path / "no" / "plan.json"
    )
    assert (code, out) == (2, "") and "plan.json" in err


def test_auto_is_the_method_that_solve_takes_and_rows_go_to_a_csv_file(
    capsys: Captured, tmp_path: Path
) -> None:
    path, table = small_workload(tmp_path), tmp_path / "compared.csv"
    code, out, err = run(capsys, "compare", path, "--methods", "auto,dp,single_device", "--csv", table)
    assert (code, err) == (0, "") and out.count("single_device") == 1
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["method"], float(row["value"])) for row in rows] == [("dp", 2.25), ("single_device", 3.0)]
    assert {"split", "seconds", "bound", "gap", "memory"} <= rows[0].keys()
