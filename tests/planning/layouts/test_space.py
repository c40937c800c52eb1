"""Every layout takes all GPUs and divides the batch, and a runtime gets only what it can run."""

from __future__ import annotations

from itertools import product

import pytest

from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.space import LayoutSpace, powers
from tests.planning.layouts.cases import random_search


@pytest.mark.parametrize("seed", range(12))
def test_the_space_is_all_products_that_the_runtime_can_run(seed: int) -> None:
    """Written without the space's own shortcuts: all degrees, filtered by the rules."""
    space, _ = random_search(seed)
    if space.cluster.gpus > 8:
        return
    degrees = range(1, space.cluster.gpus + 1)
    schedules = [(name, v) for name in space.runtime.schedules for v in range(1, 9)]
    found = set()
    for t, p, c, e, b in product(degrees, degrees, degrees, (1, 2, 4), powers(16)):
        d, rest = divmod(space.cluster.gpus, t * p * c)
        within = t * e <= space.cluster.node or e > space.cluster.node
        if d == 0 or rest or space.cluster.node % t or t * c > space.cluster.node or c not in powers(c):
            continue
        for recompute, zero, (schedule, v) in product(("none", "full"), range(4), schedules):
            if (zero and d == 1) or not within or (p == 1 and (schedule, v) != ("1f1b", 1)):
                continue
            layout = ClusterLayout(t, p, d, b, v, c, e, schedule, recompute, zero)
            if not space.runtime.refuses(layout, space.decoder, space.global_batch):
                found.add(layout)
    even = {
        x
        for x in found
        if RUNTIMES["any"].schedules.get(x.schedule)
        or 0 in (len(space.decoder.blocks) % x.stages, (len(space.decoder.blocks) + 2) % x.stages)
    }
    assert set(space) == even


def test_a_layout_takes_all_gpus() -> None:
    space, _ = random_search(3)
    assert all(layout.gpus == space.cluster.gpus for layout in space)
    assert isinstance(space, LayoutSpace)
