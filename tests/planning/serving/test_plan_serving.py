"""The best layout of a server is that of all layouts and dealings by the evaluator; no bound is below it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations, permutations, product
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
from partitioner.planning.pools.pool import PooledKind, partitions
from partitioner.planning.serving import pipelines
from partitioner.planning.serving import search as searching
from partitioner.planning.serving.costs import ServingCosts, ServingLoad
from partitioner.planning.serving.one_user import OneUserRun
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout
from partitioner.planning.serving.search import ServingSearch

NEAR = 1 + 1e-6


def config(layers: int = 2, hidden: int = 256) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000}
    return {"model_type": "llama"} | sizes | heads


def random_search(seed: int) -> tuple[ServingSearch, list[PooledKind]]:
    """Return the search for the best layout of a small model on one or two kinds of GPUs."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(["A100-80", "RTX 4090", "H100"], 2, replace=False)]
    kinds = [
        PooledKind(name, named_device(name), int(rng.integers(1, 3)), float(10 ** rng.uniform(6.5, 8)), 2)
        for name in names[: int(rng.integers(1, 3))]
    ]
    ttft, tpot = float(10 ** rng.uniform(-0.8, 0.3)), float(10 ** rng.uniform(-1, 1))
    load = ServingLoad(int(rng.choice([16, 64])), int(rng.choice([8, 64])), ttft, tpot)
    decoder = decoder_to_train(config(int(rng.integers(1, 4)), int(rng.choice([64, 256]))))
    costs = ServingCosts(decoder, load, "bfloat16", 1e9)
    return ServingSearch(costs, 1, Clock(), Interruption()), kinds


def exhaustive(run: PipelineRun) -> float:
    """Return the tokens per second of the best dealing by the evaluator; 0 if none is within the limits."""
    graph, devices, load = run.graph(), run.devices(), run.costs.load
    count, least = len(graph.ids), np.inf
    for parts in range(1, min(count, len(devices.names)) + 1):
        for cuts in combinations(range(1, count), parts - 1):
            stage = np.searchsorted(np.array(cuts), np.arange(count), side="right")
            for order in permutations(devices.names, parts):
                placement: dict[int | str, str] = {node: order[stage[i]] for i, node in enumerate(graph.ids)}
                evaluation = pt.evaluate(graph, devices, placement, "throughput")
                if not evaluation.violations and first_token(run, placement) <= load.ttft * NEAR:
                    least = min(least, float(evaluation.value))
    tokens = {"both": load.generate, "decode": load.generate - 1, "prefill": np.inf}[run.layout.role]
    if run.layout.sequences * least / tokens > load.tpot * NEAR:
        return 0.0
    return run.layout.copies * load.generate * 1e3 / least


def first_token(run: PipelineRun, placement: dict[int | str, str]) -> float:
    """Return the milliseconds of a prompt and a step in all layers, and of the prompt between devices."""
    costs, load = run.costs, run.costs.load
    kinds = {kind.name: each for kind, each in zip(run.layout.kinds, run.layers, strict=True)}
    total, names = 0.0, [placement[str(i)] for i in range(len(placement))]
    if run.layout.role == "decode":
        return 0.0
    for i, name in enumerate(names):
        layers = next(each for kind, each in kinds.items() if name.startswith(kind))
        total += layers.prefill[i] + layers.decode[i] * (run.layout.role == "both")
        if i + 1 < len(names) and names[i + 1] != name:
            total += layers.sent[i] * load.prompt / (load.prompt + load.generate) / costs.network * 1e3
    return total


def agree(seed: int) -> bool:
    """Compare the best layout of one part of the pool; whether there is any."""
    search, kinds = random_search(seed)
    runs = [PipelineRun(search.costs, layout) for layout in search.layouts(kinds)]
    rates = [exhaustive(run) for run in runs]
    for run, rate in zip(runs, rates, strict=True):
        assert rate <= run.most() * NEAR, run.layout.name
    found, best = search.block(kinds), max(rates, default=0.0)
    assert bool(found.best) == (best > 0)
    if found.best:
        assert found.best[0].tokens_per_second == pytest.approx(best, rel=1e-6)
        assert best <= found.bound * NEAR and found.best[0].memory <= NEAR
    return bool(found.best)


def test_the_best_layout_is_that_of_all_layouts_and_dealings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BATCH", 2)
    assert sum(agree(seed) for seed in range(6)) > 1


@pytest.mark.slow
def test_the_best_layout_is_that_of_all_layouts_and_dealings_in_many_pools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(searching, "MOST_BATCH", 4)
    assert sum(agree(seed) for seed in range(100, 140)) > 10


def test_one_user_gets_tokens_as_soon_as_any_dealing_gives_them() -> None:
    """The time of a token, by the evaluator, over all placements on a GPU and a CPU."""
    decoder, load = decoder_to_train(config(3)), ServingLoad(16, 8)
    kinds = [
        PooledKind("RTX 4090", named_device("RTX 4090"), 1, 4.5e6, 1),
        PooledKind("CPU", named_device("CPU"), 1, 1e9, 1),
    ]
    costs = ServingCosts(decoder, load, "bfloat16", 1e9)
    found = ServingSearch(costs, 1, Clock(), Interruption(), True).block(kinds).best[0]
    run, least = PipelineRun(costs, found.layout), np.inf
    graph, devices = OneUserRun(run).graph(), run.devices(through_host=True)
    for names in product(devices.names, repeat=len(graph.ids)):
        placement = dict(zip(graph.ids, names, strict=True))
        evaluation = pt.evaluate(graph, devices, placement, "latency", subgraphs_per_accelerator=len(names))
        if not evaluation.violations:
            least = min(least, float(evaluation.value))
    assert found.tpot == pytest.approx(least, rel=1e-6) and len(found.stages) > 1


def test_partitions_are_all_ways_to_divide() -> None:
    assert [len(list(partitions(list(range(n))))) for n in range(5)] == [1, 1, 2, 5, 15]  # type: ignore[arg-type]


def test_kinds_that_add_nothing_are_named() -> None:
    found = pt.plan_serving(config(), {"H100": 1, "T4": (1, 1e3)}, prompt=16, generate=8, dtype="float16")
    assert found.best.unused(found.pool) == {"T4": 1} and "not worth using: 1 T4" in found.summary(80)
    assert max(map(len, found.summary(80).splitlines())) <= 80


def test_unlike_gpus_share_requests_by_speed() -> None:
    found = pt.plan_serving(config(), {"H100": 1, "L40S": 1}, prompt=16, generate=8, top=3)
    alone = pt.plan_serving(config(), {"H100": 1}, prompt=16, generate=8, top=1)
    assert found.best.tokens_per_second >= alone.best.tokens_per_second * (1 - 1e-9)
    assert sum(found.best.shares) == pytest.approx(1) and found.bound >= found.best.tokens_per_second


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"pool": {}}, "pool = {}: must name at least one kind"),
        ({"pool": {"H100": (1, -1.0)}}, "pool['H100'] = -1.0 bytes: must be a number above 0"),
        ({"pool": {"H100": 0}}, "pool['H100'] = 0: must be an integer of at least 1"),
        ({"network": 0.0}, "network = 0.0: must be a number above 0"),
        ({"tpot": 0.0}, "tpot = 0.0: must be a number of milliseconds above 0"),
        ({"pool": {"Z9": 1}}, "device = 'Z9'"),
        ({"users": 2}, "users = 2: must be 1 or None"),
        ({"prompt": 0}, "prompt = 0: must be an integer of at least 1"),
        ({"ttft": -1.0}, "ttft = -1.0: must be a number of milliseconds above 0"),
    ],
)
def test_options_out_of_range_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(pt.OptionError, match=re.escape(said)):
        asked: dict[str, Any] = {"config": config(), "pool": {"H100": 1}, "prompt": 16, "generate": 8}
        pt.plan_serving(**asked | given)


def test_no_layout_fits() -> None:
    with pytest.raises(pt.InfeasibleError, match=r"none of \d+ layouts on 2 H100 fits"):
        pt.plan_serving(config(), {"H100": (2, 1e3)}, prompt=16, generate=8)


def test_the_command_serves(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "config.json").write_text(json.dumps(config()), encoding="utf-8")
    asked = ["plan", str(file), "--serve", "--prompt", "16", "--generate", "8", "--tpot", "1s"]
    assert main([*asked, "--device", "H100", "--gpus", "2", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["load"]["tpot"] == 1000 and found["layouts"][0]["tokens_per_second"] <= found["bound"]
    assert main([*asked, "--pool", "H100=1,L40S=1:20GB", "--ttft", "600ms"]) == 0
    assert "tokens/s, at most" in capsys.readouterr().out
    assert main([*asked]) == 2 and main(["plan", str(file), "--serve", "--prompt", "16"]) == 2
    assert "generate = None: must be given with --serve" in capsys.readouterr().err
    assert main([*asked, "--pool", "H100=1", "--settings", str(tmp_path / "file")]) == 2


def test_a_search_without_an_answer_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no dealing of layers is found, and where none is proven to exist."""

    def asked() -> None:
        pt.plan_serving(config(), {"H100": 1}, prompt=16, generate=8)

    monkeypatch.setattr(pipelines, "solve", raising(pt.NoPlanFound("no plan found (time_limit)")))
    with pytest.raises(pt.NoPlanFound, match="layouts was found to be within the limits; others may be"):
        asked()
    monkeypatch.setattr(pipelines, "solve", raising(pt.InfeasibleError("memory")))
    with pytest.raises(pt.InfeasibleError, match="fits the memory within the limits of time"):
        asked()


def raising(error: Exception) -> Callable[..., None]:
    """A function that raises an error."""

    def call(*_: object, **__: object) -> None:
        raise error

    return call


def test_the_first_token_is_in_time_in_another_dealing_than_that_with_the_most_tokens() -> None:
    """The dealing with the most tokens is too slow for the first one; the fastest GPUs alone are not."""
    kinds = tuple(PooledKind(name, named_device(name), 1, 1e10, 8) for name in ("H100", "RTX 4090"))
    decoder, layout = decoder_to_train(config(4)), ServingLayout(kinds, (1, 1), (1, 1), 1, 1)

    def run(ttft: float = np.inf) -> PipelineRun:
        return PipelineRun(ServingCosts(decoder, ServingLoad(64, 8, ttft=ttft), "bfloat16", 1e9), layout)

    free, _ = run().solved(None, None)
    least = float(np.min([each.prefill + each.decode for each in run().layers], axis=0).sum())
    assert free is not None and least < free.ttft
    limit = (least + free.ttft) / 2
    found, bound = run(limit).solved(None, None)
    assert found is not None and found.ttft <= limit * NEAR and bound == found.tokens_per_second
    assert found.tokens_per_second == pytest.approx(exhaustive(run(limit)), rel=1e-6)
    assert run(least / 2).solved(None, None) == (None, 0.0)
