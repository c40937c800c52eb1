"""Slow tests whose time is over are skipped and say so; the files come in another order for another seed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE / "methods" / "solvers"


def printed(*options: str) -> str:
    """What pytest prints of the tests of a folder."""
    command = [sys.executable, "-m", "pytest", str(FOLDER), "-p", "no:cacheprovider", *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, check=True).stdout


def test_slow_tests_are_skipped_once_their_time_is_over() -> None:
    found = printed("-m", "slow", "--slow-for", "0", "-rs")
    assert re.search(r"SKIPPED \[[1-9]\d*\] tests/conftest.py:\d+: the 0 s for slow tests are over", found)
    assert "passed" not in found and "failed" not in found


def test_a_seed_shuffles_the_files() -> None:
    orders = [
        tuple(re.findall(r"test_\w+\.py", printed("--collect-only", "--slow-order", str(seed))))
        for seed in (0, 0, 1, 2, 3)
    ]
    assert orders[0] == orders[1] and len(set(orders)) > 1
    assert len({tuple(sorted(order)) for order in orders}) == 1
