"""No dealing of layers, order of stages or share of a batch on a pool is faster than the bound."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.base.clock import Clock
from partitioner.base.interruption import Interruption
from partitioner.cli.command_line import main
from partitioner.estimation.named_devices import named_device
from partitioner.planning.layouts.question import decoder_to_train
from partitioner.planning.pools.dealing import with_shares
from partitioner.planning.pools.pool import PooledKind
from partitioner.planning.pools.search import PoolSearch
from partitioner.planning.pools.training import PartRun, PoolCosts, PoolLayout, PoolRun, pipeline_of
from partitioner.planning.pools.training_bound import least_time

NEAR = 1 + 1e-6
SLOWER = 1.1  # a plan may be than the best dealing of all: stages are dealt by the slowest, not by filling


def config(layers: int = 2, hidden: int = 256) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}
    return {"model_type": "llama"} | sizes | heads


def random_search(seed: int) -> tuple[PoolSearch, list[PooledKind]]:
    """Return the search for the best layout of a small model on one or two kinds of GPUs."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(["A100-80", "RTX 4090", "H100"], 2, replace=False)]
    kinds = [
        PooledKind(name, named_device(name), int(rng.integers(1, 3)), float(10 ** rng.uniform(7.0, 9)), 2)
        for name in names
    ]
    decoder = decoder_to_train(config(int(rng.integers(1, 4)), int(rng.choice([64, 256]))))
    network, latency = float(10 ** rng.uniform(8.5, 10.5)), float(rng.choice([0, 1e-5]))
    costs = PoolCosts(decoder, int(rng.choice([64, 512])), "bfloat16", network, latency)
    return PoolSearch(costs, int(rng.choice([2, 3, 4, 6])), 1, Clock(), Interruption()), kinds


def pipelines(costs: PoolCosts, layout: PoolLayout, number: int) -> Iterator[PartRun]:
    """Yield a part's pipelines with every dealing of the layers to every order of its groups."""
    part = layout.parts[number]
    groups = [k for k, count in enumerate(part.groups) for _ in range(count)]
    layers = len(costs.of(part.kinds[0]).layer_names)
    for stages in range(1, min(layers, len(groups)) + 1):
        for kinds in set(permutations(groups, stages)):
            for cuts in combinations(range(1, layers), stages - 1):
                yield pipeline_of(costs, layout, part, kinds, (0, *cuts, layers), 1)


def divided(batch: int, copies: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield all numbers of microbatches, at least one each, that pipelines of the parts run of a batch."""
    if len(copies) == 1:
        if batch % copies[0] == 0 and batch:
            yield (batch // copies[0],)
        return
    for share in range(1, batch // copies[0] + 1):
        for others in divided(batch - share * copies[0], copies[1:]):
            yield (share, *others)


def exhaustive(search: PoolSearch, layout: PoolLayout) -> float:
    """Return the milliseconds of the fastest dealing and shares of a layout; infinity if none fits."""
    least = np.inf
    every = [list(pipelines(search.costs, layout, i)) for i in range(len(layout.parts))]
    chosen = [(run,) for run in every[0]] if len(every) == 1 else [(a, b) for a in every[0] for b in every[1]]
    copies = [part.copies for part in layout.parts]
    for runs in chosen:
        for shares in divided(search.global_batch // layout.microbatch, copies):
            found = PoolRun(search.costs, layout, with_shares(runs, shares))
            if all(run.fits for run in found.parts):
                least = min(least, found.simulated[0])
    return float(least)


def check_against_all(seed: int) -> None:
    """Compare a random search with all dealings of its layouts."""
    search, kinds = random_search(seed)
    with search.interruption:
        runs = search.search(kinds)
    best = np.inf
    for layout in list(search.layouts(kinds)):
        bounds, value = search.bounds(layout), exhaustive(search, layout)
        best = min(best, value)
        if bounds is None:
            assert value == np.inf
            continue
        for exact in (False, True):
            assert least_time(bounds, search.global_batch, exact) <= value * NEAR
    assert search.whole and search.least <= best * NEAR
    if runs:
        assert best <= runs[0].simulated[0] * NEAR and runs[0].simulated[0] <= best * SLOWER
        assert all(run.fits for run in runs[0].parts)


@pytest.mark.parametrize("seed", range(3))
def test_no_dealing_or_share_is_faster_than_the_bound(seed: int) -> None:
    check_against_all(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 25))
def test_no_dealing_or_share_of_many_pools_is_faster_than_the_bound(seed: int) -> None:
    check_against_all(seed)


def test_replicas_on_unlike_gpus_share_a_batch_by_their_speed() -> None:
    """The slower one runs fewer sequences; the batch ends with its ring of gradients over the network."""
    found = pt.plan_pool(
        config(4),
        {"H100": 1, "L40S": 1},
        global_batch=64,
        sequence=512,
        network=1e12,
        top=200,
        time_limit=None,
    )
    row = next(row for row in found.rows if len(row.pipelines) == 2 and row.layout.microbatch == 1)
    shares = {each.stages[0][0]: each.sequences for each in row.pipelines}
    assert sum(shares.values()) == 64 and shares["H100"] > shares["L40S"] > 0
    costs = PoolCosts(decoder_to_train(config(4)), 512, "bfloat16", 1e12, 5e-6)
    times, nbytes = [], 0.0
    for part in row.layout.parts:
        layers = costs.layers(row.layout, part, 0)
        times.append(float((layers.forward + layers.backward).sum()))
        nbytes = float(layers.gradients.sum())
    slowest = max(
        time * shares[part.kinds[0].name] for time, part in zip(times, row.layout.parts, strict=True)
    )
    ring = nbytes / 1e12 * 1e3 + 2 * 5e-3
    assert slowest + ring <= 1e3 * row.seconds <= (slowest + ring) * 1.5  # and the optimizer's step
    even = 32 * max(times)
    assert slowest < even


def test_stages_on_unlike_gpus_have_layers_by_their_speed() -> None:
    found = pt.plan_pool(
        config(16, 1024), {"H100": 1, "L40S": 1}, global_batch=64, sequence=512, top=200, time_limit=None
    )
    row = next(row for row in found.rows if len(row.pipelines[0].stages) == 2)
    blocks = {kind: count for kind, _, count in row.pipelines[0].stages}
    assert sum(blocks.values()) == 16 and blocks["H100"] > blocks["L40S"]


def test_gpus_that_are_not_worth_using_are_named() -> None:
    """Over a network of a megabyte a second neither pipelines nor replicas are worth it."""
    found = pt.plan_pool(
        config(), {"H100": 1, "T4": 2}, global_batch=8, sequence=64, network=1e6, dtype="float16"
    )
    assert found.best.unused(found.pool) == {"T4": 2} and "not worth using: 2 T4" in found.summary(160)
    assert found.as_dict()["layouts"][0]["unused"] == {"T4": 2}


def test_a_model_that_fits_no_layout_is_infeasible() -> None:
    with pytest.raises(
        pt.InfeasibleError, match=r"the states of the model fit none of \d+ layouts on 1 H100, 1 T4"
    ):
        pt.plan_pool(
            config(), {"H100": (1, 1e3), "T4": (1, 1e3)}, global_batch=8, sequence=64, dtype="float16"
        )


def test_no_time_is_no_proof() -> None:
    with pytest.raises(pt.NoPlanFound, match="no layout was found among the first 0"):
        pt.plan_pool(config(), {"H100": 1}, global_batch=8, sequence=64, time_limit=1e-9)


class ShortClock(Clock):
    """A clock whose time is over after it was read a number of times."""

    def __init__(self, reads: int) -> None:
        super().__init__()
        self.reads = reads

    @property
    def expired(self) -> bool:
        self.reads -= 1
        return self.reads < 0

    @property
    def left(self) -> float:
        return 60.0 if self.reads > 0 else 0.0


@pytest.mark.parametrize("seed", [2, 3])
def test_time_may_end_at_any_moment(seed: int) -> None:
    """The search ends with the layouts found by then or with none, and its bound holds for these."""
    counts = []
    for reads in range(0, 60, 3):
        search, kinds = random_search(seed)
        search.clock, search.top = (clock := ShortClock(reads)), 100
        found = search.search(kinds)
        counts.append(len(found))
        assert all(run.seconds * 1e3 >= search.least / NEAR for run in found)
        assert search.whole == (clock.reads >= 0)
    assert counts[0] == 0 < counts[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pool": {}}, "must name at least one kind"),
        ({"pool": {"H100": 0}}, r"pool\['H100'\] = 0: must be an integer of at least 1"),
        ({"pool": {"H100": (1, -1.0)}}, r"pool\['H100'\] = -1.0 bytes: must be a number above 0"),
        ({"global_batch": 0}, "global_batch = 0: must be an integer of at least 1"),
        ({"network": 0}, "network = 0"),
    ],
)
def test_options_out_of_range_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    asked: dict[str, Any] = {"pool": {"H100": 1}, "global_batch": 8, "sequence": 64} | given
    with pytest.raises(pt.OptionError, match=said):
        pt.plan_pool(config(), **asked)


def test_the_command_prints_the_table_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (file := tmp_path / "config.json").write_text(json.dumps(config(4)), encoding="utf-8")
    asked = ["plan", str(file), "--global-batch", "8", "--sequence", "64"]
    pooled = [*asked, "--pool", "H100=1,L40S=2:20GB", "--time-limit", "60"]
    assert main([*pooled, "--output", str(tmp_path / "plan.json")]) == 0
    text = capsys.readouterr().out
    assert "above the bound of" in text and "blocks of the first's stages: " in text
    assert max(map(len, text.splitlines())) <= 80
    written = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert written["pool"]["L40S"] == {"count": 2, "memory": 20e9}
    assert written["bound"] <= written["layouts"][0]["seconds"]
    assert main([*pooled, "--runtime", "megatron"]) == 2 and main(asked) == 2
    assert "is not for --pool without --serve" in capsys.readouterr().err
