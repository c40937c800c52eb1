"""Prompts and tokens on separate servers: loads by hand, and the best split of all by enumeration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.estimation.named_devices import named_device
from partitioner.planning.pools.pool import PooledKind
from partitioner.planning.serving import search as searching
from partitioner.planning.serving.on_pool import most_separate, separate
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout
from partitioner.planning.serving.search import ServingSearch
from tests.planning.serving.test_plan_serving import NEAR, config, exhaustive, random_search


def rate(search: ServingSearch, kinds: list[PooledKind], role: str) -> float:
    """Return the tokens per second of kinds, each in its best layout and dealing by the evaluator."""
    total = 0.0
    for kind in kinds:
        layouts = search.layouts([kind], role)
        total += max((exhaustive(PipelineRun(search.costs, each)) for each in layouts), default=0.0)
    return total


def agree(seed: int) -> bool:
    """Compare the best split with all of them; whether there is any."""
    search, kinds = random_search(seed)
    best = 0.0
    for counts in np.ndindex(*(kind.count + 1 for kind in kinds)):
        prompts = [replace(kind, count=n) for kind, n in zip(kinds, counts, strict=True) if n]
        left = [(kind, kind.count - n) for kind, n in zip(kinds, counts, strict=True)]
        decode = [replace(kind, count=n) for kind, n in left if n]
        best = max(best, min(rate(search, prompts, "prefill"), rate(search, decode, "decode")))
    rows, bound = separate(search, kinds, 1)
    assert best <= bound * NEAR and best <= most_separate(search, kinds) * NEAR
    assert (rows[0].tokens_per_second if rows else 0.0) == pytest.approx(best, rel=1e-6)
    return best > 0


def test_the_best_split_is_that_of_all_splits_layouts_and_dealings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BATCH", 2)
    assert sum(agree(seed) for seed in range(30, 40)) > 2


@pytest.mark.slow
def test_the_best_split_is_that_of_all_in_many_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BATCH", 4)
    assert sum(agree(seed) for seed in range(400, 460)) > 10


def test_servers_of_prompts_send_caches_and_the_others_take_them() -> None:
    """By hand: the prompt and its cache; a step's share of all tokens but the first, and the cache."""
    search, _ = random_search(1)
    kind = PooledKind("H100", named_device("H100"), 1, 8e10, 8)
    load, costs = search.costs.load, search.costs
    layers = costs.layers(kind, 1, 4)
    nbytes = layers.cache.sum() * load.prompt / (load.prompt + load.generate)
    moved = nbytes / costs.network * 1e3
    prompts, decode = (
        PipelineRun(costs, ServingLayout((kind,), (1,), (1,), 1, batch, role=role)).requests.sum()
        for role, batch in (("prefill", 1), ("decode", 4))
    )
    assert prompts == pytest.approx(layers.prefill.sum() + moved)
    assert decode == pytest.approx((load.generate - 1) * layers.decode.sum() / 4 + moved)


def test_the_summary_says_which_servers_are_better_and_why() -> None:
    asked: dict[str, Any] = {"prompt": 64, "generate": 32, "top": 2}
    found = pt.plan_serving(config(), {"H100": 2}, **asked)
    assert found.best.tokens_per_second == max(row.tokens_per_second for row in found.best_of.values())
    assert "servers: " in found.summary(200)
    for servers in ("same", "separate"):
        only = pt.plan_serving(config(), {"H100": 2}, servers=servers, **asked)
        assert only.best.tokens_per_second == pytest.approx(found.best_of[servers].tokens_per_second)
        assert "servers: " not in only.summary(200)
    assert sum(found.best_of["separate"].shares) == pytest.approx(2)
    with pytest.raises(pt.OptionError, match="servers = 'both'"):
        pt.plan_serving(config(), {"H100": 2}, servers="both", **asked)
