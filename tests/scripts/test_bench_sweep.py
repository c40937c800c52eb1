"""The benchmark of sweeps: twenty workloads, and a sweep whose rows are those of the loop."""

from __future__ import annotations

import pytest
from bench_sweep import OBJECTIVES, POOLS, files, product, solved, swept_rows

from tests.analysis.sweeps.test_sweep import threads as threads  # the executor


def test_there_are_twenty_workloads() -> None:
    assert len(files()) == 20 and len(product(files())) == 20 * len(POOLS) * len(OBJECTIVES)


@pytest.mark.slow
def test_rows_are_those_of_the_loop(threads: object) -> None:
    paths = [path for path in files() if "gnmt_inference" in path]
    assert swept_rows(paths, executor=threads) == [solved(asked) for asked in product(paths)]
