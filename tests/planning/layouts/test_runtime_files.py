"""The settings of runtimes say the layout: degrees, batches and blocks come back when they are read."""

from __future__ import annotations

import json
import shlex
import tomllib

import pytest

import partitioner as pt
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.runtime_files import Training, writer_of

LAYOUT = ClusterLayout(
    tensor=2, pipeline=2, data=4, microbatch=2, virtual_stages=2, schedule="interleaved_1f1b"
)
TRAINING = Training(LAYOUT, 64, 2048, (2, 3, 3, 2))


def test_arguments_of_megatron() -> None:
    words = shlex.split(writer_of("megatron")(TRAINING))
    assert words[words.index("--pipeline-model-parallel-layout") + 1] == "Et*2|t*3|t*3|t*2L"
    assert words[words.index("--tensor-model-parallel-size") + 1] == "2"
    assert words[words.index("--global-batch-size") + 1] == "64" and "--sequence-parallel" in words


def test_a_layout_reads_back_in_megatron() -> None:
    layout = pytest.importorskip("megatron.core.transformer.pipeline_parallel_layer_layout")
    words = shlex.split(writer_of("megatron")(TRAINING))
    text = words[words.index("--pipeline-model-parallel-layout") + 1]
    layout.PipelineParallelLayerLayout(text, 2).validate_layer_layout(10, 0)


def test_toml_of_torchtitan_reads_back() -> None:
    found = tomllib.loads(writer_of("torchtitan")(TRAINING))
    parts = found["parallelism"]["module_fqns_per_model_part"]
    assert parts[0] == ["tok_embeddings", "layers.0", "layers.1"] and parts[-1][-2:] == ["norm", "output"]
    assert found["parallelism"]["data_parallel_shard_degree"] == 4
    assert found["training"]["local_batch_size"] == 16


def test_json_of_deepspeed_says_one_batch() -> None:
    found = json.loads(writer_of("deepspeed")(TRAINING))
    per_step = found["train_micro_batch_size_per_gpu"] * found["gradient_accumulation_steps"] * LAYOUT.data
    assert per_step == found["train_batch_size"] == 64


def test_overrides_of_nemo() -> None:
    lines = dict(line.split("=", 1) for line in writer_of("nemo")(TRAINING).splitlines())
    assert lines["trainer.strategy.virtual_pipeline_model_parallel_size"] == "2"
    assert lines["data.micro_batch_size"] == "2"


def test_a_plan_for_no_runtime_has_no_settings() -> None:
    with pytest.raises(pt.OptionError, match="runtime = 'any': settings are written for"):
        writer_of("any")(TRAINING)
