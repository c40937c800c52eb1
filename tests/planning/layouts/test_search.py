"""The search finds what simulating all layouts finds, bounds and memory are true by other counts of them."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner.planning.layouts.search import least_time
from tests.planning.layouts.cases import random_config, random_search
from tests.planning.layouts.memory_oracle import memory

TOLERANCE = 1 + 1e-9


def agree(seed: int) -> bool:
    """Compare the search with the simulation of all layouts; whether there is any."""
    space, search = random_search(seed)
    layouts = list(space)
    assert len(layouts) == len(set(layouts))
    runs = [search.run_of(layout) for layout in layouts]
    config = random_config(np.random.default_rng(seed))
    for run in runs:
        needed = memory(config, run.layout, search.costs.sequence, search.global_batch, run.borders)
        assert needed is None or run.memory.max() == pytest.approx(needed, rel=1e-9), run.layout
    fitting = [run for run in runs if run.fits]
    for run in fitting:
        assert run.bound <= run.simulated[0] * TOLERANCE, run.layout
        assert least_time(run) <= run.simulated[0] * TOLERANCE, run.layout
    best = sorted(fitting, key=lambda run: (run.simulated[0], run.layout))[: search.top]
    found = search.search(layouts)
    assert [run.simulated[0] for run in found] == [run.simulated[0] for run in best]
    assert search.tried == len(layouts) and search.whole
    assert not found or search.least <= found[0].simulated[0] * TOLERANCE
    return bool(found)


def test_the_search_finds_what_simulating_all_finds() -> None:
    assert sum(agree(seed) for seed in range(12)) > 6


@pytest.mark.slow
def test_the_search_finds_what_simulating_all_finds_in_many_spaces() -> None:
    assert sum(agree(seed) for seed in (*range(12, 40), *range(1_000, 1_400))) > 214
