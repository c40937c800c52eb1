"""A sweep has a row for every task, equal to a solve by itself; its files hold the same, and it goes on."""

from __future__ import annotations

import csv
import json
import math
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partitioner import (
    DevicePool,
    Devices,
    PartitionerError,
    SweepProgress,
    SweepResult,
    load_plan,
    solve,
    sweep,
)
from partitioner.analysis.sweeps.drive import Drive
from partitioner.analysis.sweeps.journal import row_line
from partitioner.analysis.sweeps.result import pareto_front
from partitioner.analysis.sweeps.row import FAILED, FEASIBLE, INFEASIBLE, NO_PLAN, OPTIMAL, SweepRow
from partitioner.analysis.sweeps.task import SweepTask
from partitioner.base.interruption import Interruption
from tests.analysis.sweeps.tiny import METHODS, POOLS, Read, broken, chain, task, too_large, workload

WORKLOADS = [workload(3), workload(4)]
OPTIONS: dict[str, Any] = {"objective": ["throughput", "gpipe"], **METHODS}


@pytest.fixture(scope="module")
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def swept(executor: Executor, **more: Any) -> SweepResult:
    given: dict[str, Any] = {"workloads": WORKLOADS, "pools": POOLS, "options": OPTIONS} | more
    return sweep(executor=executor, warm_up=False, **given)


def test_rows_are_those_of_separate_solves(threads: Executor) -> None:
    rows = swept(threads).rows
    assert len({row.key for row in rows}) == len(rows) == 2 * 3 * 2
    for i, row in enumerate(rows):
        graph, count = chain(3 + i // 6), 1 + i // 2 % 3
        objective = OPTIONS["objective"][i % 2]
        plan = solve(graph, Devices.accelerated(count), objective, method="single_device")
        assert (row.value, row.bound, row.status) == (plan.value, plan.bound, plan.status)
        assert (row.devices, row.used, row.split, row.method) == (count, 1, plan.split, "single_device")
        assert row.options == METHODS


def test_what_has_no_plan_is_a_row_with_its_reason(threads: Executor) -> None:
    """Nodes that fit no device, sizes that do not fit together, an option of another method."""
    pools = [DevicePool(memory=0.5), DevicePool(memory=2.0), DevicePool(memory=3.0)]
    found = swept(threads, workloads=WORKLOADS[0], pools=pools, options=METHODS)
    assert [row.status for row in found.rows] == [INFEASIBLE, INFEASIBLE, OPTIMAL]
    assert found.failed == 0 and all(row.reason for row in found.rows[:2])
    (row,) = swept(threads, workloads=WORKLOADS[0], pools=POOLS[:1], options={"backend": "none"}).rows
    assert row.status == FAILED and "none" in row.reason


@pytest.mark.parametrize(
    ("call", "reason", "attempts"),
    [(too_large, "out of memory", 2), (broken, "RuntimeError: a defect", 1)],
)
def test_an_error_is_a_row_that_failed(call: Any, reason: str, attempts: int) -> None:
    """Too little memory may be the fault of other tasks, so that the task runs again at the end."""
    with ThreadPoolExecutor(1) as executor:
        (row,) = driven(executor, [task(graph=Read(call))])
    assert (row.status, row.reason, row.attempts) == (FAILED, reason, attempts)


def driven(executor: Executor, tasks: list[SweepTask]) -> list[SweepRow]:
    """The rows of tasks that a user cannot ask for, in the order of their ends."""
    rows: list[SweepRow] = []
    drive = Drive(executor, warm=False, keep_plans=False, take=lambda row, plan: rows.append(row))
    drive.run(tasks, Interruption(), lambda: None)
    return rows


def test_a_sweep_goes_on_where_it_ended(threads: Executor, tmp_path: Path) -> None:
    """Stopped after four rows, then continued: every task runs once."""
    path, stop, seen = tmp_path / "rows.jsonl", threading.Event(), []

    def watch(progress: SweepProgress) -> None:
        seen.append(progress)
        if progress.done >= 4:
            stop.set()

    first = swept(threads, results=path, on_progress=watch, stop=stop)
    kept = path.read_text(encoding="utf-8")
    assert not first.complete and len(first.rows) == len(kept.splitlines()) == 4
    assert seen[0] == replace(seen[0], done=0, failed=0, total=12, before=0) and seen[0].left is None
    second = swept(threads, results=path)
    assert second.complete and second.before == 4
    assert path.read_text(encoding="utf-8").startswith(kept)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 12
    third = swept(NoExecutor(), results=path)
    assert third.rows == second.rows


class NoExecutor(Executor):
    """An executor that was shut down."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        raise RuntimeError("cannot schedule new futures after shutdown")


class GivingUp(Executor):
    """An executor that cancels every task, as Dask does when its scheduler is lost."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.cancel()
        future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("executor", [NoExecutor(), GivingUp()])
def test_an_executor_that_gives_up_ends_the_sweep(executor: Executor, tmp_path: Path) -> None:
    with pytest.raises(
        PartitionerError, match=r"the executor takes no more tasks \((Runtime|Cancelled)Error"
    ):
        swept(executor, results=tmp_path / "rows.jsonl")
    assert (tmp_path / "rows.jsonl").read_bytes() == b""


def test_failed_tasks_run_again_where_asked_for(threads: Executor, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    given = {"workloads": WORKLOADS[0], "pools": POOLS[:2], "options": METHODS, "results": path}
    first = swept(threads, **given)
    failed = replace(first.rows[0], status=FAILED, value=None)
    text = path.read_text(encoding="utf-8")
    path.write_text(text + row_line(failed), encoding="utf-8")
    assert [row.status for row in swept(NoExecutor(), **given).rows] == [FAILED, FEASIBLE]
    again = swept(threads, **given, retry_failed=True)
    assert [replace(row, seconds=0.0) for row in again.rows] == [
        replace(row, seconds=0.0) for row in first.rows
    ]


def test_equal_tasks_are_solved_once(threads: Executor, tmp_path: Path) -> None:
    """A workload with two names, a pool with two: each has its row under its own name."""
    pools = [POOLS[1], DevicePool("two", 2)]
    path = tmp_path / "rows.jsonl"
    given = [WORKLOADS[0], replace(WORKLOADS[0], name="same")]
    found = swept(threads, workloads=given, pools=pools, options=METHODS, results=path)
    assert [(row.workload, row.pool) for row in found.rows] == [
        (name, pool) for name in ("chain3", "same") for pool in ("2 accelerators", "two")
    ]
    assert found.complete and len(path.read_text(encoding="utf-8").splitlines()) == 1


def test_every_format_has_the_same_rows(threads: Executor, tmp_path: Path) -> None:
    found = swept(threads, results=tmp_path / "rows.csv", plans=tmp_path / "plans")
    table = list(csv.DictReader((tmp_path / "rows.csv").open(encoding="utf-8")))
    lines = (tmp_path / "rows.csv.jsonl").read_text(encoding="utf-8").splitlines()
    found.save(tmp_path / "rows.jsonl")
    saved = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert sorted(lines) == sorted(saved)
    assert [float(row["value"]) for row in table] == [row.value for row in found.rows]
    assert {row["method_option"] for row in table} == {"single_device"}
    for row in found.rows:
        plan = load_plan(tmp_path / "plans" / row.plan)
        assert (plan.value, plan.objective) == (row.value, row.objective)
    assert json.loads(found.to_json())["rows"][3]["value"] == found.rows[3].value


def test_parquet_has_the_same_rows(threads: Executor, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    pools = [DevicePool(memory=0.5), *POOLS]
    found = swept(threads, pools=pools, results=tmp_path / "rows.parquet")
    assert parquet.read_table(tmp_path / "rows.parquet").to_pylist() == [row.flat() for row in found.rows]
    SweepResult((), 0, 0, 0.0).save(tmp_path / "none.parquet")
    assert parquet.read_table(tmp_path / "none.parquet").num_rows == 0


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bandwidth": 3}, "bandwidth means nothing to a workload that is not read from a file"),
        ({"results": "rows.xls"}, "results = 'rows.xls': must end in one of .csv, .jsonl, .parquet"),
        ({"executor": 3}, "executor = 3: must be a concurrent.futures.Executor"),
        ({"processes": 0}, "workers = 0"),
        ({"plans": "\x00"}, "plans = '\\x00'"),
        ({"stop": 3}, "stop = 3: must be a threading.Event"),
        ({"on_progress": 3}, "on_progress = 3: must be a function"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(PartitionerError) as failure:
        sweep(WORKLOADS[0], **given)
    assert words in str(failure.value)


def test_the_front_has_what_no_other_plan_beats() -> None:
    rows = [
        SweepRow("", "w", "", 9, "throughput", FEASIBLE, value=float(value), used=used)
        for used, value in ((3, 2), (1, 5), (2, 5), (3, 4), (2, 3), (5, 2), (4, 1), (6, math.pi))
    ]
    front = pareto_front([*rows, SweepRow("", "w", "", 1, "throughput", NO_PLAN)])
    assert [(row.used, row.value) for row in front] == [(1, 5.0), (2, 3.0), (3, 2.0), (4, 1.0)]
    assert SweepResult(tuple(rows), 8, 0, 0.0).front("w") == front


def test_texts_are_short(threads: Executor) -> None:
    found = swept(threads, pools=[*POOLS, DevicePool(memory=0.5)])
    assert repr(found) == "<SweepResult: 16 of 16 tasks done, 0 failed>"
    assert repr(found.rows[0]) == ("<SweepRow: 'chain3' on '1 accelerators', throughput, value 6, optimal>")
    for width in (80, 160):
        lines = found.summary(width).splitlines()
        assert lines[0].startswith("16 of 16 tasks done, 0 failed, ")
        reasons = [line for line in lines if line.startswith("infeasible, ")]
        assert max(map(len, lines)) <= width and [line[:16] for line in reasons] == ["infeasible, 2 x:"] * 2
    progress = SweepProgress(5, 1, 10, 1, 8.0)
    assert progress.text() == "5 of 10 done, 1 failed, 8 s, about 10 s left"


def test_a_stopped_sweep_runs_nothing(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert swept(NoExecutor(), stop=stop).rows == ()


def test_a_notebook_shows_the_rows_as_a_table() -> None:
    row = SweepRow("0", "a<b", "4 x 16GiB", 4, "throughput", "optimal", value=2.0, bound=2.0, used=3)
    html = SweepResult((row,), 1, 0, 0.1)._repr_html_()
    assert html.startswith("<table><caption>SweepResult: 1 of 1 tasks done")
    assert "a&lt;b" in html and "<td>4 x 16GiB</td>" in html
