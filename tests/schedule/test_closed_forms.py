"""For equal stages the simulation gives the closed forms of the literature, exactly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partitioner.schedule import simulate
from tests.schedule.lines import equal_stages

SIZES = [(p, m) for p, m in itertools.product((1, 2, 3, 4, 8), (1, 2, 4, 7, 16)) if m >= p]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "1f1b_async"])
@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_bubble_of_gpipe_and_1f1b(schedule: str, stages: int, microbatches: int) -> None:
    """(p - 1) / (m + p - 1) on every device, whatever backward passes cost."""
    found = simulate(*equal_stages(stages, backward=2.0), schedule, microbatches)
    assert found.makespan == 3 * (microbatches + stages - 1)
    assert np.allclose(found.bubble, (stages - 1) / (microbatches + stages - 1), rtol=1e-12)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_bubble_of_inference(stages: int, microbatches: int) -> None:
    found = simulate(*equal_stages(stages, trains=False), "inference", microbatches)
    assert found.makespan == microbatches + stages - 1


@pytest.mark.parametrize("chunks", [2, 3, 4])
@pytest.mark.parametrize(("stages", "microbatches"), [(2, 2), (2, 6), (4, 4), (4, 12), (8, 16)])
def test_interleaving_divides_the_pauses(stages: int, microbatches: int, chunks: int) -> None:
    """Pauses of (p - 1)(f + b) in all, where v chunks of a stage take f and b each: 1/v of those of 1F1B."""
    found = simulate(*equal_stages(stages, chunks, backward=2.0), "interleaved", microbatches)
    assert found.makespan == 3 * (microbatches * chunks + stages - 1)
    whole = simulate(*equal_stages(stages, forward=chunks, backward=2.0 * chunks), "1f1b", microbatches)
    pauses, of_whole = found.makespan - found.busy, whole.makespan - whole.busy
    assert np.allclose(pauses * chunks, of_whole, rtol=1e-12)


@pytest.mark.parametrize(("stages", "microbatches"), SIZES)
def test_zero_bubble_has_a_third_of_the_pauses(stages: int, microbatches: int) -> None:
    """(p - 1)(f + i - w) instead of (p - 1)(f + i + w), all three equal."""
    line = equal_stages(stages, backward=2.0)
    found, whole = (simulate(*line, schedule, microbatches) for schedule in ("zb-h1", "1f1b"))
    assert found.makespan == 3 * microbatches + stages - 1
    assert np.allclose(3 * (found.makespan - found.busy), whole.makespan - whole.busy, rtol=1e-12)


def test_a_single_stream_takes_every_sample_by_itself() -> None:
    assert simulate(*equal_stages(4), "single_stream", 5).makespan == 40
