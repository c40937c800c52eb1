"""On a local cluster of Dask the rows are those of threads; solvers run there; a lost worker is a row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest

from partitioner import DevicePool, sweep
from partitioner.analysis.sweeps.processes import LOCAL, dask_executor
from partitioner.analysis.sweeps.row import FAILED, OPTIMAL
from partitioner.base.errors import BackendUnavailable
from tests.analysis.sweeps.test_sweep import OPTIONS, WORKLOADS, driven, swept
from tests.analysis.sweeps.tiny import POOLS, Read, killed, task


def test_without_dask_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(BackendUnavailable) as failure, dask_executor(LOCAL, 2):
        pass
    assert str(failure.value) == 'clusters need Dask: pip install "dnn-partitioner[cluster]"'


@pytest.fixture(scope="module")
def cluster() -> Iterator[Executor]:
    pytest.importorskip("distributed", reason="Dask's package distributed is not installed")
    with dask_executor(LOCAL, 2) as executor:
        yield executor


@pytest.mark.slow
def test_rows_are_those_of_threads(cluster: Executor) -> None:
    """Also of a method that starts solvers in processes of their own, which a daemon could not."""
    options = OPTIONS | {"method": ["single_device", "ip"], "split": "convex", "gap": 0.01}
    pools = [*POOLS, DevicePool(memory=0.5)]
    with ThreadPoolExecutor(1) as threads:
        here = swept(threads, pools=pools, options=options)
    there = sweep(WORKLOADS, pools, options, executor=cluster, warm_up=False)
    assert [(row.key, row.value, row.status) for row in there.rows] == [
        (row.key, row.value, row.status) for row in here.rows
    ]
    assert {row.method for row in there.rows} == {"single_device", "ip", ""}


@pytest.mark.slow
def test_a_lost_worker_is_a_row_with_its_reason(cluster: Executor) -> None:
    """After a second attempt; tasks that waited for the same worker are not to blame."""
    rows = driven(cluster, [task(graph=Read(killed)), *(task(n) for n in range(3, 6))])
    assert sorted(row.status for row in rows) == [FAILED, *[OPTIMAL] * 3]
    (failed,) = (row for row in rows if row.status == FAILED)
    assert failed.reason.startswith("its worker was lost: KilledWorker: ")
