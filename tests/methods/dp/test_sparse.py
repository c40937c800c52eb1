"""Without a table of all sets of devices plans and bounds are as true, and calls keep their limit of time."""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import partitioner as pt
from partitioner.base.clock import METER
from partitioner.formats.devices import load_devices
from partitioner.methods.dp import pipeline
from partitioner.methods.dp.sparse_tables import packed
from tests.methods.dp.test_groups import COMBINATIONS, agree
from tests.methods.slow_parameters import slow

INSTANCES = Path(__file__).parents[3] / "instances"
OTHERS = ["", "kinds", "replicas kinds", "replicas memory kinds", "kinds replicas memory constraints"]
ONE = [features for features in COMBINATIONS if "batch" not in features]


@pytest.mark.parametrize(
    ("features", "count"),
    [("groups", 12), ("groups replicas memory", 12), *(slow(features, 40) for features in [*ONE, *OTHERS])],
)
@pytest.mark.parametrize("path", [True, False])
def test_equals_exhaustive_search(
    features: str, count: int, path: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every case is searched without a table; where tensors pass between neighbours, all plans are proven."""
    monkeypatch.setattr(pipeline, "EFFORT", replace(pipeline.EFFORT, most_states=0))
    feasible, proven = agree(range(count), features, path)
    assert feasible > count // 5
    assert proven > 0.8 * feasible
    assert proven == feasible or not path or "constraints" in features


def many_servers(servers: int, each: int, seed: int = 0) -> pt.Devices:
    """Servers of unlike kinds, with a link of its own between each two."""
    rng = np.random.default_rng(seed)
    kinds = tuple(
        pt.DeviceKind(f"kind{i}", each, times="accelerator", time_factor=float(rng.uniform(0.5, 4)))
        for i in range(servers)
    )
    groups = tuple(pt.DeviceGroup(f"server {i}", {f"kind{i}": each}) for i in range(servers))
    pairs = combinations([group.name for group in groups], 2)
    links = tuple(pt.GroupLink(float(rng.choice([2, 4, 8, 20])), pair) for pair in pairs)
    return pt.Devices(kinds, groups=groups, links=links)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"replicas": 4}, {"objective": "batch", "microbatches": 16}])
def test_eight_servers_of_four_keep_a_limit(options: dict[str, object]) -> None:
    """Seconds are those of the processor, so that other programs do not count."""
    workload = pt.load(INSTANCES / "gpt3_6b7_training.json")
    began, compiled = time.process_time(), METER.seconds
    plan = pt.solve(workload.graph, many_servers(8, 4), time_limit=2.0, **options)  # type: ignore[arg-type]
    assert time.process_time() - began - (METER.seconds - compiled) < 3.0
    assert 0 < plan.bound <= plan.value
    assert pt.evaluate(workload.graph, None, plan).value == plan.value


@pytest.mark.slow
def test_a_decoder_on_three_servers_is_proven() -> None:
    """Residual connections pass over two operators, and stages hold more than that."""
    workload = pt.load(INSTANCES / "gpt3_6b7_parts_training.json")
    devices = load_devices(INSTANCES / "devices" / "unlike_servers.json")
    plan = pt.solve(workload.graph, devices, "throughput", schedule="1f1b", microbatches=32, time_limit=60)
    assert plan.status == "optimal" and plan.value == pytest.approx(85.5872, abs=1e-4)


def test_counts_in_words_are_compared_by_one_subtraction() -> None:
    counts = packed(np.array([4] * 20 + [0]), exact=False)
    assert counts.guard.tolist()[0].bit_count() == 15 and len(counts.guard) == 2
    assert counts.word.tolist() == [0] * 15 + [1] * 6
    one, other = 3 << int(counts.shift[1]), 2 << int(counts.shift[1])
    guard = int(counts.guard[0])
    assert ((one | guard) - other) & guard == guard
    assert ((other | guard) - one) & guard != guard
