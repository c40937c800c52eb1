"""A config becomes layers with the times of the roofline, or the field that breaks a rule is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from partitioner import OptionError, PartitionerError, Workload, WorkloadError, load, load_config, solve
from partitioner.cli.command_line import main
from partitioner.exports.device_map import numbers
from partitioner.formats.llm.families import FAMILIES
from tests.formats.llm.published import DEEPSEEK_V3, MODELS
from tests.formats.test_fuzz import run_mutants
from tests.instances import write

TINY: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "tie_word_embeddings": True,
    "torch_dtype": "float32",
}
GIVEN: dict[str, Any] = {"sequence": 8, "device": "A100-40", "bandwidth": 1e9}


def loaded(folder: Path, config: dict[str, Any], **options: Any) -> Workload:
    return load_config(write(folder, config, "config.json"), **GIVEN | options)


def test_layers_have_the_paths_of_modules_and_share_what_is_tied(tmp_path: Path) -> None:
    workload = loaded(tmp_path, TINY, batch=2, accelerators=3, microbatches=4)
    graph = workload.graph
    paths = ["model.embed_tokens", *(f"model.layers.{i}" for i in range(4)), "model.norm", "lm_head"]
    assert list(graph.ids) == paths + [f"{path}/backward" for path in paths]
    assert [graph.layer_labels[layer] for layer in graph.layer.tolist()] == paths * 2
    cost = {
        (graph.ids[u], graph.ids[v]): c for (u, v), c in zip(graph.edges.tolist(), graph.cost, strict=True)
    }
    hidden = 2 * 8 * 64 * 4 / 1e9 * 1e3
    assert cost["model.layers.0", "model.layers.1"] == pytest.approx(hidden)
    assert cost["model.layers.1/backward", "model.layers.0/backward"] == pytest.approx(hidden)
    exchange = cost["lm_head/backward", "model.embed_tokens/backward"]
    assert exchange == pytest.approx(100 * 64 * 4 / 1e9 * 1e3 / 4)
    top = {
        "timeUnit": "ms",
        "model": "llama",
        "batch": 2,
        "sequence": 8,
        "device": "A100-40",
        "dtype": "float32",
    }
    assert top.items() <= graph.extras.top.items()
    assert [(kind.count, kind.memory) for kind in workload.devices.kinds] == [(3, 40e9), (0, None)]


def test_times_are_those_of_the_roofline(tmp_path: Path) -> None:
    """The head: 2 * tokens * 6400 operations at 312 TFLOP/s, or all bytes at 1,555 GB/s, at half of both."""
    for tokens in (1, 10_000_000):
        graph = loaded(
            tmp_path, TINY, sequence=tokens, dtype="bfloat16", efficiency=0.5, training=False
        ).graph
        arithmetic = 2 * tokens * 6400 / 312e12
        traffic = 2 * (6400 + tokens * 164) / 1555e9
        head = graph.time[0, graph.position["lm_head"]]
        assert head == pytest.approx(max(arithmetic, traffic) / 0.5 * 1e3)
    trained = loaded(tmp_path, TINY, efficiency=1).graph.time[0]
    assert trained[len(trained) // 2 :].tolist() == (2 * trained[: len(trained) // 2]).tolist()


def test_one_measured_step_scales_all_times(tmp_path: Path) -> None:
    plain = loaded(tmp_path, TINY)
    total = plain.graph.time[0].sum()
    whole = loaded(tmp_path, TINY, measured=3e-3 * total)
    assert whole.graph.time[0] == pytest.approx(3 * plain.graph.time[0])
    assert whole.graph.extras.top["scale"] == pytest.approx(3)
    layer = "model.layers.2"
    position = plain.graph.position
    own = plain.graph.time[0][[position[layer], position[f"{layer}/backward"]]].sum()
    one = loaded(tmp_path, TINY, measured={layer: 0.5e-3 * own})
    assert one.graph.time[0] == pytest.approx(0.5 * plain.graph.time[0])
    notes = solve(one.graph, one.devices).notes
    assert any(note.endswith("of A100-40, times 0.5 as one step was measured") for note in notes)


@pytest.mark.parametrize(
    ("measured", "message"),
    [
        (0, "measured = 0: must be seconds above 0"),
        ({}, "measured = {}: must be seconds above 0"),
        ({"model.layer.0": 1}, "layer 'model.layer.0' must be one of .*did you mean 'model.layers.0'"),
    ],
)
def test_a_measured_step_is_checked(tmp_path: Path, measured: Any, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        loaded(tmp_path, TINY, measured=measured)


def test_windows_bound_cache_and_scores(tmp_path: Path) -> None:
    """Gemma 2: every other block sees 4 tokens."""
    config = TINY | {"model_type": "gemma2", "head_dim": 16, "sliding_window": 4}
    graph = loaded(tmp_path, config, training=False, dtype="bfloat16").graph
    cache = 2 * 2 * 16 * 2
    sizes = [graph.size[graph.position[f"model.layers.{i}"]] for i in range(4)]
    assert sizes == [4 * cache, 8 * cache] * 2
    flops = [graph.extras.nodes[graph.position[f"model.layers.{i}"]]["flops"] for i in range(2)]
    assert flops[1] - flops[0] == 2 * (36 - (1 + 2 + 3 + 4 * 5)) * 4 * 2 * 16


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_solved(tmp_path: Path, family: str) -> None:
    """The config has the fields of all families, with sizes that suit each."""
    more = {"n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 32, "ffn_dim": 96, "num_local_experts": 4}
    more |= {"max_position_embeddings": 32, "num_experts_per_tok": 2, "num_experts": 4, "n_routed_experts": 4}
    more |= {"moe_intermediate_size": 24, "shared_expert_intermediate_size": 32, "kv_lora_rank": 16}
    more |= {"qk_rope_head_dim": 8, "qk_nope_head_dim": 8, "v_head_dim": 16, "first_k_dense_replace": 1}
    config = TINY | more | {"model_type": family, "text_config": TINY | more}
    workload = loaded(tmp_path, config, accelerators=2)
    plan = solve(workload.graph, workload.devices)
    assert plan.status == "optimal" and len(set(plan.placement.values())) in (1, 2)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"model_type": "lama"},
            "file: model_type = 'lama': must be one of llama, mistral, .* did you mean 'llama'",
        ),
        ({"model_type": None}, "file: model_type = None: must be one of llama"),
        ({"hidden_size": 0}, "file: hidden_size = 0: must be a whole number from 1 to 1,000,000,000"),
        ({"hidden_size": 65}, r"file: hidden_size = 65: must be a multiple of num_attention_heads \(4\)"),
        ({"hidden_size": "64"}, "file: hidden_size = '64': must be a whole number"),
        ({"num_hidden_layers": 10**8}, "file: num_hidden_layers = 100000000: must be at most 10000"),
        (
            {"torch_dtype": "half"},
            "file: torch_dtype = 'half': must be one of float64, .*; or give the option",
        ),
        ({"torch_dtype": None, "dtype": 7}, "file: dtype = 7: must be one of float64"),
        ({"tie_word_embeddings": "no"}, "file: tie_word_embeddings = 'no': must be true or false"),
        ({"model_type": "mixtral"}, "file: num_local_experts: is missing"),
        (
            {"model_type": "mixtral", "num_local_experts": 2, "num_experts_per_tok": 3},
            "file: num_experts_per_tok = 3: must be at most 2",
        ),
    ],
)
def test_a_field_that_cannot_be_read_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(WorkloadError, match=message) as caught:
        loaded(tmp_path, TINY | change)
    assert "config.json: file: " in str(caught.value)


def test_a_missing_field_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match=r"config.json: file: vocab_size: is missing"):
        loaded(tmp_path, {name: value for name, value in TINY.items() if name != "vocab_size"})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sequence": 0}, "sequence = 0: must be an integer of at least 1"),
        ({"batch": 1.5}, "batch = 1.5: must be an integer of at least 1"),
        ({"context": -1}, "context = -1: must be an integer of at least 0"),
        ({"device": "H10"}, "device = 'H10': must be one of V100, .*; did you mean 'H100'"),
        ({"dtype": "half"}, "dtype = 'half': must be one of float64"),
        ({"training": 1}, "training = 1: must be True or False"),
        ({"predictors": "yes"}, "predictors = 'yes': must be True or False"),
        ({"efficiency": 2}, "efficiency = 2: must be a number above 0 and at most 1"),
        ({"optimizer_bytes": -1}, "optimizer_bytes = -1: must be a finite number of at least 0"),
        ({"bandwidth": None}, "bandwidth = None: must be a number above 0, in bytes per second"),
        ({"memory": "lots"}, "'lots': must be a number of bytes"),
    ],
)
def test_an_option_out_of_range_is_refused(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        loaded(tmp_path, TINY, **options)


def test_a_config_without_a_type_is_read_as_bfloat16(tmp_path: Path) -> None:
    for change in ({"torch_dtype": None}, {"torch_dtype": None, "dtype": "bfloat16"}):
        assert loaded(tmp_path, TINY | change).graph.extras.top["dtype"] == "bfloat16"


def test_another_file_is_no_config(tmp_path: Path) -> None:
    layers = {"layers": [{"name": "a", "forward": 1}]}
    with pytest.raises(WorkloadError, match="must be a model's config; this is a file of layers, which load"):
        loaded(tmp_path, layers)


def test_the_command_line_reads_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, TINY, "config.json"))
    words = [
        "--accelerators",
        "2",
        "--bandwidth",
        "1e9",
        "--device",
        "A100-40",
        "--sequence",
        "8",
        "--batch",
        "3",
    ]
    assert main(["solve", path, *words, "--efficiency", "0.5", "--format", "json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    same = load(path, accelerators=2, batch=3, efficiency=0.5, **GIVEN)
    assert plan["value"] == solve(same.graph, same.devices).value
    assert main(["solve", path, "--accelerators", "2", "--bandwidth", "1e9"]) == 2
    assert "needs --sequence: must be an integer of at least 1" in capsys.readouterr().err


def test_mutated_configs_are_refused_or_solved(tmp_path: Path) -> None:
    """Both happen often."""

    def read(path: Path) -> None:
        try:
            workload = load_config(path, **GIVEN)
        except PartitionerError as error:
            assert "config.json" in str(error) or "mutant.json" in str(error) or "=" in str(error)
            raise
        assert len(workload.graph) > 3

    configs = [TINY, DEEPSEEK_V3, MODELS["GPT-2"].config, MODELS["Qwen3-30B-A3B"].config]
    counts = run_mutants(tmp_path, 8, 250, configs, read)
    assert counts["done"] > 30 and counts["WorkloadError"] > 80


def test_a_cpu_named_with_gpus_has_its_data_in_host_memory(tmp_path: Path) -> None:
    """Exports then write CPU for it; alone it is the device of the workload as any other."""
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4}
    config = {"model_type": "llama", "num_key_value_heads": 4, "vocab_size": 100} | sizes
    (file := tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    asked: dict[str, Any] = {"sequence": 16, "bandwidth": 1e9, "training": False}
    workload = load_config(file, device=["RTX 4090", "CPU"], **asked)
    assert [kind.pays_communication for kind in workload.devices.kinds] == [True, False]
    assert list(numbers(workload.devices).values()) == [0, "cpu"] and workload.devices.route == "host"
    assert load_config(file, device="CPU", **asked).devices.kinds[0].pays_communication
