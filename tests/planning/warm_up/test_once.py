"""All kernels are compiled once on a machine: again only if a file changes, and never by two at once."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from partitioner.base.errors import PartitionerError
from partitioner.planning.warm_up import once
from partitioner.planning.warm_up.once import warm_up_once


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The calls of a compilation that does nothing, on a machine where nothing was compiled."""
    found: list[int] = []
    monkeypatch.setattr("partitioner.base.compiled.temporary_folder", lambda: tmp_path)

    def compiles() -> None:
        time.sleep(0.05)
        found.append(1)

    monkeypatch.setattr(once, "warm_up", compiles)
    return found


def test_the_second_process_finds_them_compiled(calls: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert [warm_up_once.__wrapped__() for _ in range(3)] == [True, False, False]
    assert calls == [1]
    monkeypatch.setenv("NUMBA_CACHE_DIR", "elsewhere")
    assert warm_up_once.__wrapped__() and calls == [1, 1]


def test_those_that_ask_at_the_same_time_wait(calls: list[int]) -> None:
    threads = [threading.Thread(target=warm_up_once.__wrapped__) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


def test_nothing_is_done_where_kernels_cannot_be_kept(
    calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses() -> None:
        raise PartitionerError("cannot be kept")

    monkeypatch.setattr(once, "warm_up", refuses)
    assert warm_up_once.__wrapped__()  # tasks then compile what they need
    monkeypatch.setattr("partitioner.base.compiled.temporary_folder", lambda: None)
    assert not warm_up_once.__wrapped__()
    assert calls == []
