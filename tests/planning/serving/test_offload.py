"""Layers and experts on GPUs and a CPU: the soonest token is that of all ways by the evaluator."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.cli.command_line import main
from partitioner.estimation.named_devices import named_device
from partitioner.planning.layouts.question import decoder_to_train
from partitioner.planning.pools.pool import PooledKind
from partitioner.planning.serving.costs import ServingCosts, ServingLoad
from partitioner.planning.serving.one_user import OneUserRun
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout

CONFIG = {
    "model_type": "mixtral", "hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1000, "num_local_experts": 4,
    "num_experts_per_tok": 2,
}  # fmt: skip


def one_user(seed: int) -> OneUserRun:
    """Return a small mixture of experts on one or two GPUs of some memory, and a CPU of some."""
    rng = np.random.default_rng(seed)
    gpus, host = int(rng.integers(1, 3)), float(rng.choice([1e9, 12e6]))
    kinds = (
        PooledKind("RTX 4090", named_device("RTX 4090"), gpus, float(rng.uniform(1e6, 9e6)), 8),
        PooledKind("CPU", named_device("CPU"), 1, host, 1),
    )
    costs = ServingCosts(
        decoder_to_train(CONFIG), ServingLoad(16, 8), "bfloat16", float(10 ** rng.uniform(7, 10))
    )
    return OneUserRun(PipelineRun(costs, ServingLayout(kinds, (1, 1), (gpus, 1), 1)))


def ways(one: OneUserRun) -> float:
    """Return the least milliseconds of a token over all ways that the evaluator accepts; infinity if none is.

    GPUs follow one another, and experts are where the rest of their layer is, or on the CPU.
    """
    graph, devices, least = one.graph(), one.run.devices(through_host=True), np.inf
    host, gpus = devices.names[-1], list(devices.names[:-1])
    whole = [(name, name) for name in devices.names]
    apart = [(gpu, host) for gpu in gpus]
    for choice in product(*(whole + apart * bool(own) for own in one.own)):
        order = [gpus.index(rest) for rest, _ in choice if rest != host]
        if order != sorted(order):
            continue
        placement: dict[int | str, str] = {str(i): rest for i, (rest, _) in enumerate(choice)}
        placement |= {f"{i} experts": own for i, (_, own) in enumerate(choice) if one.own[i]}
        found = pt.evaluate(graph, devices, placement, "latency", subgraphs_per_accelerator=10)
        if not found.violations:
            least = min(least, float(found.value))
    return least


def agree(seed: int) -> int:
    """Compare the pipeline with all ways; how many layers have their experts alone on the CPU, or -1."""
    one = one_user(seed)
    found, least = one.solved(), ways(one)
    assert (found is not None) == np.isfinite(least)
    if found is None:
        return -1
    assert found.tpot == pytest.approx(least, rel=1e-9)
    assert found.bound == pytest.approx(found.tokens_per_second, rel=1e-9) and found.memory <= 1
    return len(found.experts)


def test_the_soonest_token_is_that_of_all_ways() -> None:
    found = [agree(seed) for seed in range(12)]
    assert max(found) > 0 and len(set(found)) > 2


@pytest.mark.slow
def test_the_soonest_token_is_that_of_all_ways_in_many_pools() -> None:
    assert sum(agree(seed) > 0 for seed in range(100, 250)) > 20


def test_experts_are_a_part_of_their_layers() -> None:
    """By hand: the three matrices of four experts have 4 x 3 x 256 x 512 numbers of two bytes."""
    one = one_user(0)
    assert one.own.tolist() == [0, 4 * 3 * 256 * 512 * 2, 4 * 3 * 256 * 512 * 2, 0, 0]
    for layers, experts in zip(one.run.layers, one.experts, strict=True):
        assert (experts[0] <= layers.prefill).all() and (experts[1] <= layers.decode).all()
        assert (experts[:2, 1] > 0).all() and (experts[:2, [0, 3, 4]] == 0).all()


def test_arguments_of_llama_cpp_keep_experts_on_the_cpu(tmp_path: Path, capsys: Any) -> None:
    (file := tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    asked = ["plan", str(file), "--serve", "--prompt", "16", "--generate", "8", "--users", "1"]
    settings = tmp_path / "arguments.txt"
    pool = ["--pool", "RTX 4090=1:7MB,CPU=1", "--settings", str(settings)]
    assert main([*asked, *pool]) == 0
    assert "layers on GPUs are on the CPU" in capsys.readouterr().out
    text = settings.read_text()
    assert text.startswith("--n-gpu-layers ") and ("--n-cpu-moe 1" in text or "exps=CPU" in text)
    assert main([*asked, "--device", "H100", "--gpus", "8", "--settings", str(settings)]) in (0, 2)
