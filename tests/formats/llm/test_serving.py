"""A served decoder has the times of prefill and decode, and the cache of a whole sequence, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import partitioner as pt
from partitioner import OptionError, Workload, load_config
from partitioner.cli.command_line import main
from tests.formats.llm.published import MODELS
from tests.instances import write

LLAMA, GEMMA = MODELS["Llama-3.1-8B"].config, MODELS["Gemma-2-9B"].config
GIVEN: dict[str, Any] = {"sequence": 1000, "device": "A100-80", "bandwidth": 25e9, "training": False}
TOKEN = 2 * 8 * 128 * 2  # bytes: keys and values of 8 heads of 128 numbers of 2 bytes


def served(folder: Path, config: dict[str, Any] = LLAMA, **options: Any) -> Workload:
    path = write(folder, config, "config.json")
    return load_config(path, **GIVEN | {"generate": 200, "batch": 4, "accelerators": 4} | options)


def test_the_cache_is_that_of_all_tokens_of_a_sequence(tmp_path: Path) -> None:
    graph = served(tmp_path, context=50).graph
    blocks = [node for node in graph.ids if ".layers." in str(node)]
    assert all(graph.cache[graph.position[node]] == (50 + 1000 + 200) * TOKEN for node in blocks)
    assert len(blocks) == 32 and graph.cache.sum() == 32 * 1250 * TOKEN
    assert (graph.size == 0).all() and graph.parts[0].sum() == pytest.approx(8.03e9 * 2, rel=1e-3)


def test_a_sliding_window_bounds_the_cache(tmp_path: Path) -> None:
    """Every other block of Gemma 2 sees 4,096 tokens."""
    graph = served(tmp_path, GEMMA, sequence=6000).graph
    token = 2 * 8 * 256 * 2
    found = {float(graph.cache[graph.position[f"model.layers.{i}"]]) for i in range(42)}
    assert found == {4096.0 * token, 6200.0 * token}


def test_the_phases_are_runs_of_the_same_config(tmp_path: Path) -> None:
    """A prompt, and a token after the prompt and half of the generated ones; divided among the batch."""
    graph = served(tmp_path).graph
    path = tmp_path / "config.json"
    prefill = load_config(path, **GIVEN | {"batch": 4}).graph
    decode = load_config(path, **GIVEN | {"batch": 4, "sequence": 1, "context": 1100}).graph
    for name, run in (("prefill", prefill), ("decode", decode)):
        times = [extra["phases"][name]["accelerator"] for extra in graph.extras.nodes]
        costs = [extra["phases"][name] for extra in graph.extras.edges]
        assert times == pytest.approx((run.time[0] / 4).tolist())
        assert costs == pytest.approx((run.cost / 4).tolist())
    assert graph.time[0] == pytest.approx((prefill.time[0] + 200 * decode.time[0]) / 4)
    assert graph.cost == pytest.approx((prefill.cost + 200 * decode.cost) / 4)


def test_weights_replace_the_usual_ones(tmp_path: Path) -> None:
    usual, decode = served(tmp_path), served(tmp_path, phases={"decode": 200})
    assert (decode.graph.time < usual.graph.time)[0, 1:].all()
    assert decode.graph.extras.top["phaseWeights"] == {"decode": 200}
    assert usual.graph.extras.top["phaseWeights"] == {"prefill": 1, "decode": 200}


def test_a_plan_of_equal_devices_by_hand(tmp_path: Path) -> None:
    """8 blocks each, and the ends on two of them: the device with 8 blocks and the head is full first."""
    workload = served(tmp_path, memory=24e9)
    graph = workload.graph
    plan = pt.solve(graph, workload.devices, "capacity")
    weights = graph.parts[0]
    head = weights[graph.position["lm_head"]] + weights[graph.position["model.norm"]]
    block, cache = weights[graph.position["model.layers.0"]], graph.cache[graph.position["model.layers.0"]]
    equal = int((24e9 * (1 + 1e-9) - 8 * block - head) / (8 * cache))
    assert plan.status == "optimal" and plan.value == equal


def test_commands_serve_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, LLAMA, "config.json"))
    words = ["--inference", "--sequence", "1000", "--generate", "200", "--device", "A100-80"]
    words += ["--bandwidth", "25e9", "--accelerators", "4", "--memory", "24GB"]
    plan = str(tmp_path / "plan.json")
    asked = [*words, "--objective", "capacity", "--max-slowdown", "1.1"]
    assert main(["solve", path, *asked, "--output", plan]) == 0
    out = capsys.readouterr().out
    assert out.startswith("capacity, chain split: ") and "per sample: the cache that a sample keeps" in out
    assert main(["evaluate", path, plan, *words[:9], "--max-time-per-sample", "0.5"]) == 0
    assert "broken: " in capsys.readouterr().out
    assert main(["solve", path, *asked, "--phases", "decode=1"]) == 0
    assert "ms per sample" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"training": True}, "generate = 200: must be None for training"),
        ({"generate": 0}, "generate = 0: must be an integer of at least 1"),
        ({"generate": None, "phases": {"decode": 1}}, "a config has phases with the option generate only"),
        ({"phases": {"prefill": "x"}}, "phases = .*: must be a mapping from phases"),
        ({"bandwidth": None}, "bandwidth = None: must be a number above 0"),
    ],
)
def test_options_that_mean_nothing_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        served(tmp_path, **options)


def test_unlike_devices_have_times_of_their_own(tmp_path: Path) -> None:
    """The times on each kind, in each phase too, are those of the config on that device alone."""
    names = ["RTX4090", "A100-80"]
    both = served(tmp_path, device=names, accelerators=None)
    assert both.graph.kinds == tuple(names)
    assert [(kind.name, kind.count, kind.memory) for kind in both.devices.kinds] == [
        ("RTX4090", 1, 24e9),
        ("A100-80", 1, 80e9),
    ]
    for row, name in enumerate(names):
        alone = served(tmp_path, device=name).graph
        assert both.graph.time[row].tolist() == alone.time[0].tolist()
        assert (both.graph.cache == alone.cache).all() and (both.graph.cost == alone.cost).all()
    again = pt.weigh_phases(both.graph, {"decode": 1})
    assert (again.time < both.graph.time).all()
    devices = pt.Devices((pt.DeviceKind("RTX4090", 3, 20e9),))
    assert served(tmp_path, device=names, accelerators=None, devices=devices).devices == devices


def test_a_pool_of_unlike_devices_is_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, LLAMA, "config.json"))
    words = ["--inference", "--sequence", "2048", "--generate", "256", "--batch", "8", "--bandwidth", "25e9"]
    words += ["--device", "RTX 4090,A100-40", "--pool", "RTX 4090=2:21.6GB,A100-40=1:36GB"]
    plan = str(tmp_path / "plan.json")
    assert main(["solve", path, *words, "--objective", "capacity", "--output", plan]) == 0
    out = capsys.readouterr().out
    assert "RTX 4090:0" in out and "A100-40:0" in out and "optimal" in out.splitlines()[0]
    assert main(["export", path, plan, *words[:-2], "--to", "vllm"]) == 0
    assert "VLLM_PP_LAYER_PARTITION=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "accelerators = 4: there is no kind 'accelerator', only H100, B200"),
        ({"accelerators": None, "memory": 1e9}, "memory = 1e\\+09: there is no kind 'accelerator'"),
        ({"device": []}, "device = \\[\\]: must name at least one device"),
        ({"device": ["H100", "h100"]}, "must not name a device twice"),
        ({"device": ["H100", "RTX2080"]}, "device = 'RTX2080': must be one of"),
    ],
)
def test_wrong_pools_are_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        served(tmp_path, **{"device": ["H100", "B200"], **options})
