"""Plans say their value in a user's words, and targets in these words bound the value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.cli import main
from partitioner.workload.extras import Extras

DEVICES = pt.Devices((pt.DeviceKind("gpu", 4),))


def network(time: float = 500.0, unit: str = "ms", **known: float) -> pt.Graph:
    """Four layers and their backward passes, with what is known of a sample."""
    return pt.Graph.from_arrays(
        {"gpu": [time] * 8},
        [(i, i + 1) for i in range(7)],
        backward=[i > 3 for i in range(8)],
        color=[min(i, 7 - i) for i in range(8)],
        extras=Extras({"timeUnit": unit, **known}),
    )


@pytest.mark.parametrize("count", [300])
def test_rates_follow_from_the_value(count: int) -> None:
    """By their formulas, for samples and batches, in any unit; a rate that is not known is left out."""
    rng = np.random.default_rng(4)
    for _ in range(count):
        unit, per_second = [("s", 1.0), ("ms", 1e3), ("us", 1e6)][rng.integers(3)]
        known = {"tokens_per_sample": 2048.0} if rng.random() < 0.7 else {}
        known |= {"flops_per_sample": 3e12} if rng.random() < 0.7 else {}
        graph, batch = network(float(rng.uniform(1, 9)), unit, **known), int(rng.integers(1, 9))
        objective = str(rng.choice(["throughput", "batch"]))
        options: dict[str, Any] = {"microbatches": batch} if objective == "batch" else {}
        plan = pt.solve(graph, DEVICES, objective, **options)
        seconds = plan.value / per_second
        samples = batch / seconds if objective == "batch" else 1 / seconds
        used = sum(load.nodes > 0 for load in plan.devices)
        expected = {"samples_per_second": samples}
        expected |= {"batch_seconds": seconds} if objective == "batch" else {}
        if "tokens_per_sample" in known:
            expected["tokens_per_second"] = 2048 * samples
        if "flops_per_sample" in known:
            expected["tflops_per_device"] = 3 * samples / used
        assert plan.rates == pytest.approx(expected)


def test_the_summary_and_the_file_have_them(tmp_path: Path) -> None:
    plan = pt.solve(network(tokens_per_sample=2048), DEVICES, schedule="1f1b", microbatches=8)
    assert "rates: 0.727 samples/s, 1489 tokens/s, 11 s per batch" in plan.summary(200)
    plan.save(tmp_path / "plan.json")
    assert pt.load_plan(tmp_path / "plan.json").rates == plan.rates
    assert json.loads(plan.to_json())["rates"] == plan.rates


def test_without_a_unit_or_for_other_values_there_are_none() -> None:
    graph = pt.Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)])
    assert pt.solve(graph, DEVICES).rates == {}
    assert "rates" not in json.loads(pt.solve(graph, DEVICES).to_json())
    assert pt.solve(network(), DEVICES, "latency").rates == {}


def test_the_fewest_devices_for_a_rate_of_tokens() -> None:
    """A layer takes a second in both passes: one device passes a sample in 4 s, four in 1 s."""
    graph = network(tokens_per_sample=2048)
    for rate, count in {512.0: 1, 513.0: 2, 1024.0: 2, 2048.0: 4}.items():
        found = pt.fewest_devices(graph, DEVICES, tokens_per_second=rate)
        assert (found.count, found.bound) == (count, count)
        assert found.max_time_per_sample == pytest.approx(2048 / rate * 1e3)
        assert found.plan.rates["tokens_per_second"] >= rate * (1 - 1e-9)


def test_the_fewest_devices_for_the_time_of_a_batch() -> None:
    """Eight samples on one device take 32 s; under 1f1b on four 11 s."""
    given: dict[str, Any] = {"schedule": "1f1b", "microbatches": 8}
    one = pt.fewest_devices(network(), DEVICES, batch_seconds=32.0, **given)
    assert one.count == 1 and one.plan.objective == "makespan"
    four = pt.fewest_devices(network(), DEVICES, batch_seconds=11.0, **given)
    assert four.count == 4 and four.plan.rates["batch_seconds"] == pytest.approx(11.0)
    tokens = network(tokens_per_sample=2048)
    same = pt.fewest_devices(tokens, DEVICES, None, "makespan", tokens_per_second=2048 * 8 / 11, **given)
    assert same.count == 4


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"tokens_per_second": 9.0}, "tokens_per_second = 9: the graph does not say tokens_per_sample"),
        ({"tokens_per_second": -1.0}, "tokens_per_second = -1.0: must be a number above 0"),
        (
            {"tokens_per_second": 9.0, "max_time_per_sample": 3.0},
            "and tokens_per_second say the same",
        ),
        ({"batch_seconds": 9.0, "objective": "throughput"}, "means nothing to objective 'throughput'"),
    ],
)
def test_a_target_that_means_nothing_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(pt.OptionError, match=words):
        pt.fewest_devices(network(), DEVICES, schedule="1f1b", microbatches=8, **given)
    with pytest.raises(pt.OptionError, match=words):
        pt.least_memory(network(), DEVICES, schedule="1f1b", microbatches=8, **given)


def test_the_command_line_takes_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "network.json"
    pt.Workload(network(tokens_per_sample=2048), DEVICES).save(path)
    words = ["fewest-devices", str(path), "--tokens-per-second", "1024", "--format", "json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["count"] == 2


def test_a_simulation_says_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A batch of 8 samples of 2,048 tokens in the time of the timeline."""
    graph = network(tokens_per_sample=2048)
    plan = pt.solve(graph, DEVICES, "throughput")
    workload, file = tmp_path / "workload.json", tmp_path / "plan.json"
    pt.Workload(graph, DEVICES).save(workload)
    plan.save(file)
    asked = ["simulate", str(workload), str(file), "--schedule", "1f1b", "--microbatches", "8"]
    assert main([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    seconds = found["makespan"] / 1e3
    assert found["rates"]["batch_seconds"] == pytest.approx(seconds)
    assert found["rates"]["tokens_per_second"] == pytest.approx(8 * 2048 / seconds)
    assert main(asked) == 0
    assert "tokens/s" in capsys.readouterr().out


LLAMA_13B = {
    "model_type": "llama",
    **{"hidden_size": 5120, "intermediate_size": 13824, "num_hidden_layers": 40, "vocab_size": 32000},
    **{"num_attention_heads": 40, "num_key_value_heads": 40, "torch_dtype": "bfloat16"},
}
OF_13B: dict[str, Any] = {"sequence": 4096, "device": "H100", "bandwidth": 50e9}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The config of a Llama of 13 billion parameters."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_13B))
    return path


def test_13b_reaches_400_000_tokens_a_second_on_256_gpus(config: Path) -> None:
    """Replicas exchange weights once a batch, so that a part of them suffices; fewer do not by arithmetic."""
    workload = pt.load_config(config, **OF_13B, accelerators=256)
    given: dict[str, Any] = {"schedule": "1f1b", "microbatches": 64, "replicas": 32}
    found = pt.fewest_devices(
        workload.graph, workload.devices, None, "throughput", tokens_per_second=400_000, **given
    )
    rates, speed = found.plan.rates, 6 * 13e9 * 400_000 / 989.4e12
    assert rates["tokens_per_second"] >= 400_000 * (1 - 1e-9)
    assert speed < found.count <= 256


def test_the_command_line_finds_them_too(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["fewest-devices", str(config), "--sequence", "4096", "--device", "H100", "--bandwidth", "50GB/s"]
    words += ["--accelerators", "256", "--tokens-per-second", "400000", "--objective", "throughput"]
    assert (
        main([*words, "--schedule", "1f1b", "--microbatches", "64", "--replicas", "32", "--gap", "0.05"]) == 0
    )
    assert "tokens/s" in capsys.readouterr().out


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_operations_by_gpu_and_by_peak(config: Path, tensor: int) -> None:
    """A device of the workload stands for `tensor` GPUs, which share its operations."""
    workload = pt.load_config(config, **OF_13B, accelerators=8, tensor=tensor)
    plan = pt.solve(workload.graph, workload.devices, schedule="1f1b", microbatches=32)
    rates, used = plan.rates, sum(load.nodes > 0 for load in plan.devices)
    flops = workload.graph.extras.top["flops_per_sample"] * rates["samples_per_second"]
    assert rates["tflops_per_device"] == pytest.approx(flops / used / 1e12)
    assert rates["mfu"] == pytest.approx(flops / used / tensor / 989.4e12)
    assert rates.get("tflops_per_gpu", rates["tflops_per_device"]) == pytest.approx(
        flops / used / tensor / 1e12
    )
    assert rates["gigabytes_per_device"] == pytest.approx(max(load.memory for load in plan.devices) / 1e9)
    assert f"{rates['mfu']:.1%} of the peak (MFU)" in plan.summary(250)


def test_a_recommendation_says_the_rates_of_each_pipeline(config: Path) -> None:
    workload = pt.load_config(config, **OF_13B, accelerators=8)
    found = pt.recommend(workload.graph, workload.devices, 16, schedules=["1f1b"])
    assert found.best is not None and found.best.plan is not None
    for one in json.loads(found.to_json())["choices"]:
        if "makespan" in one:
            assert one["rates"]["batch_seconds"] == pytest.approx(one["makespan"] / 1e3)
            assert one["rates"]["tokens_per_second"] == pytest.approx(16 * 4096 / one["makespan"] * 1e3)
    assert "rates of the first: " in found.summary(250) and "tokens/s" in found.summary(250)
