"""Long schedules are simulated in a moment."""

from __future__ import annotations

import time

import numpy as np
import pytest

from partitioner.schedule import simulate
from tests.schedule.lines import random_line


@pytest.mark.parametrize(("stages", "microbatches", "seconds"), [(8, 1024, 1.0), (64, 4096, 30.0)])
def test_time_of_a_simulation(stages: int, microbatches: int, seconds: float) -> None:
    line = random_line(np.random.default_rng(0), stages)
    simulate(*line, "1f1b", 2)  # compiles
    began = time.perf_counter()
    found = simulate(*line, "1f1b", microbatches)
    assert time.perf_counter() - began < seconds
    assert found.in_flight.tolist() == list(range(stages, 0, -1))
