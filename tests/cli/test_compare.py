"""The command compare: a table or one JSON object, options that reach the methods, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
