"""Labels of paths are the makespan of a pipeline's schedule, with few passes of each row known."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.methods.pipeline_bound._fill_drain_core import add_onward, add_returning
from partitioner.methods.pipeline_bound.paths import RowEvents, row_events

Times = list[tuple[float, float]]
FORWARD, BACKWARD = 0, 1


def row_of(samples: int, ahead: int) -> list[tuple[int, int]]:
    """The passes of a device in order: some forward passes, then backward and forward passes in turn."""
    row = [(FORWARD, m) for m in range(min(ahead, samples))]
    for m in range(samples):
        if m + ahead < samples:
            row.append((FORWARD, m + ahead))
        row.append((BACKWARD, m))
    return row


def makespan(times: Times, ahead: list[int], samples: int, returns: bool) -> float:
    """The end of the last pass if every pass begins as early as it can."""
    end = {(s, kind, m): 0.0 for s in range(len(times)) for kind in (0, 1) for m in range(samples)}
    changed = True
    while changed:
        changed = False
        for s, own in enumerate(times):
            free = 0.0
            for kind, m in row_of(samples, ahead[s]):
                neighbour = s + 1 if kind == BACKWARD and returns else s - 1
                free = max(free, end.get((neighbour, kind, m), 0.0)) + own[kind]
                changed |= end[s, kind, m] < free
                end[s, kind, m] = free
    return max(end.values())


def longest(times: Times, rows: RowEvents, returns: bool) -> float:
    """The label of the whole schedule, from the last stage to the first."""
    forward, backward = len(rows.forward), len(rows.backward)
    label = np.full((forward, backward) if returns else forward + backward, -np.inf)
    if not returns:
        label[-1] = 0.0
    for behind, own in enumerate(reversed(times)):
        found, number = np.empty_like(label), rows.number[behind]
        counts = rows.forwards[number], rows.backwards[number]
        if returns:
            add_returning(*counts, label, *own, 0.0, found, np.empty(sum(found.shape)))
        else:
            add_onward(rows, label[:, None], *own, found[:, None], 1)
        label = found
    return float(label[0, -1] if returns else label[0])


@pytest.mark.parametrize("seed", range(60))
def test_labels_are_the_makespan(seed: int) -> None:
    """GPipe with the first and the last passes, 1F1B with as many more as devices, streams with one more."""
    rng = np.random.default_rng(seed)
    stages, samples = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    times: Times = [(float(f), float(b)) for f, b in rng.choice([0.0, 1.0, 1.5, 2.0, 4.0], (stages, 2))]
    cases = (
        ([samples] * stages, 0, True),
        (list(range(stages)), stages, True),
        ([samples] * stages, 0, False),
        ([1] * stages, 1, False),
    )
    for behind, detail, returns in cases:
        known = makespan(times, behind[::-1], samples, returns)
        assert longest(times, row_events(samples, behind, detail, False), returns) == pytest.approx(known)
        coarse = row_events(samples, behind, 0, fewer=False)
        assert longest(times, coarse, returns) <= known + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_labels_with_idle_devices_are_no_longer_than_the_makespan(seed: int) -> None:
    """Rows are counted as if there were one device more behind each stage."""
    rng = np.random.default_rng(seed)
    stages, samples = int(rng.integers(1, 5)), int(rng.integers(1, 8))
    times: Times = [(float(f), float(b)) for f, b in rng.choice([0.0, 1.0, 2.0, 4.0], (stages, 2))]
    rows = row_events(samples, range(stages + 1), stages, fewer=True)
    found = longest(times, rows._replace(number=rows.number[1:]), returns=True)
    assert found <= makespan(times, list(range(stages))[::-1], samples, returns=True) + 1e-9


def test_rows_that_may_be_ahead_by_fewer_samples_hold_no_more_passes_than_each_of_them() -> None:
    exact, fewer = (row_events(5, [0, 1, 2, 3], 2, fewer=flag) for flag in (False, True))
    assert (fewer.forwards <= exact.forwards).all()
    assert (fewer.backwards <= exact.backwards).all()
    assert (fewer.forwards[0] == exact.forwards[0]).all()
