"""The real parsers of the runtimes take the settings of layouts, and say what the layout says."""

from __future__ import annotations

import json
import shlex
from dataclasses import fields, make_dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.runtime_files import Training, writer_of

VIRTUAL = "interleaved_1f1b"
PIPED = Training(ClusterLayout(2, 2, 4, 2, 2, schedule=VIRTUAL, zero=1), 64, 2048, (2, 3, 3, 2))
LONG = Training(ClusterLayout(4, 1, 2, 1, context=2, recompute="full", zero=1), 32, 8192, (10,))
ROUTED = Training(ClusterLayout(1, 2, 8, 1, expert=4, recompute="selective"), 64, 4096, (5, 5))
MEGATRONS = (PIPED, LONG, ROUTED)
TITANS = (
    Training(ClusterLayout(2, 2, 4, 2, 2, schedule=VIRTUAL, zero=2), 64, 2048, (2, 3, 3, 2)),
    Training(ClusterLayout(1, 2, 4, 1, 2, schedule="zbv", zero=2), 64, 2048, (2, 3, 3, 2)),
    Training(ClusterLayout(2, 1, 4, 2, context=2, recompute="full", zero=3), 64, 2048, (10,)),
)
SPEEDS = (
    *(Training(ClusterLayout(1, 1, 8, 2, zero=zero), 64, 2048, (10,)) for zero in range(4)),
    Training(ClusterLayout(2, 4, 2, 1, recompute="full", zero=1), 64, 2048, (2, 3, 3, 2)),
)


def arguments(training: Training) -> dict[str, Any]:
    """Return Megatron-LM's arguments by the names that its classes have for them."""
    words = shlex.split(writer_of("megatron")(training))
    found: dict[str, Any] = {}
    for i, word in enumerate(words):
        if word.startswith("--"):
            value = words[i + 1] if words[i + 1 : i + 2] and not words[i + 1].startswith("--") else True
            number = isinstance(value, str) and value.isdecimal()
            found[word[2:].replace("-", "_")] = int(value) if number else value
    return found


@pytest.mark.parametrize("training", MEGATRONS)
def test_megatron_takes_its_arguments(training: Training) -> None:
    """``TransformerConfig`` has and checks those of the model; the others are those of batches and data.

    ``pretrain_gpt.py`` makes that class from the arguments of the same names; its own parser is in no
    package.
    """
    config = pytest.importorskip("megatron.core.transformer.transformer_config").TransformerConfig
    given, layout = arguments(training), training.layout
    rest = {"micro_batch_size", "global_batch_size", "seq_length", "use_distributed_optimizer"}
    own = {name: value for name, value in given.items() if name not in rest}
    assert own.keys() <= {each.name for each in fields(config)}
    model = {"num_layers": 10, "hidden_size": 64, "num_attention_heads": 8}
    experts = {"num_moe_experts": 8, "add_bias_linear": False} if layout.expert > 1 else {}
    made = config(**model, **own, **experts, pipeline_dtype="bfloat16")
    read = (made.tensor_model_parallel_size, made.pipeline_model_parallel_size, made.context_parallel_size)
    assert read == (layout.tensor, layout.pipeline, layout.context)
    assert (made.virtual_pipeline_model_parallel_size or 1) == layout.virtual_stages
    assert made.expert_model_parallel_size == layout.expert and made.bf16
    assert (made.recompute_granularity or "none") == layout.recompute


@pytest.mark.parametrize("training", TITANS)
def test_torchtitan_reads_its_toml(training: Training, tmp_path: Path) -> None:
    manager = pytest.importorskip("torchtitan.config.manager")
    pytest.importorskip("torchtitan.config.job_config", reason="torchtitan 0.3 and later read no TOML")
    (file := tmp_path / "layout.toml").write_text(writer_of("torchtitan")(training), encoding="utf-8")
    found, layout = manager.ConfigManager().parse_args(["--job.config_file", str(file)]), training.layout
    degrees = found.parallelism
    read = (degrees.tensor_parallel_degree, degrees.pipeline_parallel_degree, degrees.context_parallel_degree)
    assert read == (layout.tensor, layout.pipeline, layout.context)
    assert degrees.data_parallel_shard_degree * degrees.data_parallel_replicate_degree == layout.data
    assert (degrees.fsdp_reshard_after_forward == "always") is (layout.zero == 3)
    assert found.activation_checkpoint.mode == layout.recompute
    accumulated = found.training.global_batch_size / (found.training.local_batch_size * layout.data)
    if layout.pipeline > 1:
        schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
        schedules.get_schedule_class(degrees.pipeline_parallel_schedule)
        assert [len(part) for part in degrees.module_fqns_per_model_part] == [3, 3, 3, 4]
        accumulated *= found.training.local_batch_size / degrees.pipeline_parallel_microbatch_size
    assert accumulated == training.accumulated


@pytest.mark.parametrize("training", TITANS)
def test_torchtitan_has_the_fields(training: Training) -> None:
    """Those of newer versions, which are set in Python or on the command line by the same names."""
    configs = pytest.importorskip("torchtitan.config.configs")
    import tomllib

    found = tomllib.loads(writer_of("torchtitan")(training))
    known = {"training": configs.TrainingConfig, "parallelism": configs.ParallelismConfig}
    for section, kind in known.items():
        assert found[section].keys() <= {each.name for each in fields(kind)}


@pytest.mark.parametrize("training", SPEEDS)
def test_deepspeed_reads_its_json(training: Training, monkeypatch: pytest.MonkeyPatch) -> None:
    """``DeepSpeedConfig`` checks that the batch is that of all replicas."""
    config = pytest.importorskip("deepspeed.runtime.config")
    monkeypatch.setattr(config.dist, "get_rank", lambda: 0)
    layout = training.layout
    replicas = SimpleNamespace(get_data_parallel_world_size=lambda: layout.data)
    found = config.DeepSpeedConfig(json.loads(writer_of("deepspeed")(training)), mpu=replicas)
    assert found.zero_optimization_stage == layout.zero and found.bfloat16_config.enabled
    assert found.train_batch_size == 64 and found.gradient_accumulation_steps == training.accumulated
    assert found.tensor_parallel_config.autotp_size == (layout.tensor if layout.tensor > 1 else 0)
    if layout.pipeline > 1:
        assert found.pipeline["stages"] == layout.pipeline
        assert bool(found.pipeline["activation_checkpoint_interval"]) is (layout.recompute == "full")


@pytest.mark.parametrize("training", MEGATRONS)
def test_nemo_takes_its_overrides(training: Training) -> None:
    """NeMo's parser sets them in a recipe of its strategy, Megatron's config and any data module."""
    run = pytest.importorskip("nemo_run")
    parser = pytest.importorskip("nemo_run.cli.cli_parser")
    strategies = pytest.importorskip("nemo.lightning.pytorch.strategies.megatron_strategy")
    ddp = pytest.importorskip("megatron.core.distributed").DistributedDataParallelConfig
    transformer = pytest.importorskip("megatron.core.transformer.transformer_config").TransformerConfig
    sizes = ("micro_batch_size", "global_batch_size", "seq_length")
    holder = make_dataclass("Holder", [("strategy", object), ("config", object)])
    data = make_dataclass("Data", [(name, int) for name in sizes])

    def pretrain(trainer: Any, model: Any, data: Any) -> None:
        pass

    strategy = run.Config(strategies.MegatronStrategy, ddp=run.Config(ddp))
    config = run.Config(transformer, num_layers=10, hidden_size=64, num_attention_heads=8)
    recipe = run.Partial(
        pretrain,
        trainer=run.Config(holder, strategy=strategy),
        model=run.Config(holder, config=config),
        data=run.Config(data),
    )
    lines = writer_of("nemo")(training).splitlines()
    found = parser.parse_cli_args(recipe, lines)
    layout, own = training.layout, found.trainer.strategy
    read = (own.tensor_model_parallel_size, own.pipeline_model_parallel_size, own.context_parallel_size)
    assert read == (layout.tensor, layout.pipeline, layout.context)
    assert own.sequence_parallel is (layout.tensor > 1)
    assert own.ddp.use_distributed_optimizer is (layout.zero > 0)
    assert [getattr(found.data, name) for name in sizes] == [
        layout.microbatch, training.global_batch, training.sequence,
    ]  # fmt: skip
    if layout.recompute != "none":
        assert found.model.config.recompute_granularity == layout.recompute
