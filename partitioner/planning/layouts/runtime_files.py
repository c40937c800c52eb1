"""The settings of a runtime that run a layout: arguments, TOML, JSON or overrides."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from partitioner.base.errors import OptionError, one_of, shown
from partitioner.exports.torchtitan import SCHEDULES
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.schedule.kinds.registry import kind_of


@dataclass(frozen=True)
class Training:
    """A layout with the batch, and the numbers of blocks of its stages in the order of the pipeline."""

    layout: ClusterLayout
    global_batch: int
    sequence: int
    blocks: tuple[int, ...]

    @property
    def even(self) -> bool:
        """Whether all stages have equal numbers of blocks."""
        return len(set(self.blocks)) == 1

    @property
    def accumulated(self) -> int:
        """The microbatches of a pipeline."""
        return self.layout.microbatches(self.global_batch)


def stage_layout(blocks: tuple[int, ...]) -> str:
    """Return Megatron's string of a pipeline: E embedding, t block, L loss, | between stages.

    Examples
    --------
    >>> stage_layout((2, 3))
    'Et*2|t*3L'
    """
    stages = ["t" * count for count in blocks]
    stages[0], stages[-1] = "E" + stages[0], stages[-1] + "L"
    return "|".join(
        "".join(letter if n == 1 else f"{letter}*{n}" for letter, n in _runs(stage)) for stage in stages
    )


def _runs(letters: str) -> list[tuple[str, int]]:
    return [(letter, len(list(group))) for letter, group in groupby(letters)]


def megatron(training: Training) -> str:
    """Return the arguments of Megatron-LM's ``pretrain_gpt.py`` for a layout, one on each line."""
    layout = training.layout
    given: dict[str, Any] = {
        "tensor-model-parallel-size": layout.tensor,
        "pipeline-model-parallel-size": layout.pipeline,
        "context-parallel-size": layout.context,
        "expert-model-parallel-size": layout.expert,
        "micro-batch-size": layout.microbatch,
        "global-batch-size": training.global_batch,
        "seq-length": training.sequence,
    }
    if layout.pipeline > 1 and (layout.virtual_stages > 1 or not training.even):
        given["pipeline-model-parallel-layout"] = f'"{stage_layout(training.blocks)}"'
    again = {"selective": {"recompute-granularity": "selective"}, "none": {}}
    whole = {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1}
    given |= again.get(layout.recompute, whole)
    flags = ["sequence-parallel"] * (layout.tensor > 1) + ["use-distributed-optimizer"] * (layout.zero > 0)
    lines = [*(f"--{name} {value}" for name, value in given.items()), *(f"--{name}" for name in flags)]
    return "\n".join([*lines, "--bf16"]) + "\n"


def nemo(training: Training) -> str:
    """Return the overrides of a recipe of NeMo 2 for a layout, one on each line."""
    layout, strategy = training.layout, "trainer.strategy."
    given: dict[str, Any] = {
        strategy + "tensor_model_parallel_size": layout.tensor,
        strategy + "pipeline_model_parallel_size": layout.pipeline,
        strategy + "context_parallel_size": layout.context,
        strategy + "expert_model_parallel_size": layout.expert,
        strategy + "sequence_parallel": layout.tensor > 1,
        "data.micro_batch_size": layout.microbatch,
        "data.global_batch_size": training.global_batch,
        "data.seq_length": training.sequence,
    }
    if layout.virtual_stages > 1:
        given[strategy + "virtual_pipeline_model_parallel_size"] = layout.virtual_stages
    if not training.even:
        given["model.config.pipeline_model_parallel_layout"] = f"'{stage_layout(training.blocks)}'"
    if layout.recompute != "none":
        given["model.config.recompute_granularity"] = layout.recompute
    if layout.recompute == "full":
        given |= {"model.config.recompute_method": "uniform", "model.config.recompute_num_layers": 1}
    given[strategy + "ddp.use_distributed_optimizer"] = layout.zero > 0
    return "".join(f"{name}={value}\n" for name, value in given.items())


def torchtitan(training: Training) -> str:
    """Return the tables of torchtitan's TOML file that say a layout."""
    layout = training.layout
    sections: dict[str, dict[str, Any]] = {
        "training": {
            "local_batch_size": layout.microbatch * (training.accumulated if layout.pipeline > 1 else 1),
            "global_batch_size": training.global_batch,
            "seq_len": training.sequence,
        },
        "parallelism": {
            "data_parallel_replicate_degree": 1,
            "data_parallel_shard_degree": layout.data,
            "fsdp_reshard_after_forward": "always" if layout.zero == 3 else "never",
            "tensor_parallel_degree": layout.tensor,
            "context_parallel_degree": layout.context,
            "expert_parallel_degree": layout.expert,
            "pipeline_parallel_degree": layout.pipeline,
        },
        "activation_checkpoint": {"mode": layout.recompute},
    }
    if layout.pipeline > 1:
        sections["parallelism"] |= {
            "pipeline_parallel_schedule": SCHEDULES[kind_of(layout.schedule).name][0],
            "pipeline_parallel_microbatch_size": layout.microbatch,
            "module_fqns_per_model_part": modules_of(training.blocks),
        }
    lines = [
        line
        for title, fields in sections.items()
        for line in (f"[{title}]", *(f"{name} = {json.dumps(value)}" for name, value in fields.items()), "")
    ]
    return "\n".join(lines)


def modules_of(blocks: tuple[int, ...]) -> list[list[str]]:
    """Return the modules of every stage by torchtitan's names."""
    ends = [sum(blocks[: i + 1]) for i in range(len(blocks))]
    parts = [
        [f"layers.{i}" for i in range(end - count, end)] for count, end in zip(blocks, ends, strict=True)
    ]
    parts[0] = ["tok_embeddings", *parts[0]]
    parts[-1] = [*parts[-1], "norm", "output"]
    return parts


def deepspeed(training: Training) -> str:
    """Return DeepSpeed's configuration for a layout, as JSON; `pipeline` is for ``PipelineModule``."""
    layout = training.layout
    fields: dict[str, Any] = {
        "train_batch_size": training.global_batch,
        "train_micro_batch_size_per_gpu": layout.microbatch,
        "gradient_accumulation_steps": training.accumulated,
        "bf16": {"enabled": True},
        "zero_optimization": {"stage": layout.zero},
    }
    if layout.tensor > 1:
        fields["tensor_parallel"] = {"autotp_size": layout.tensor}
    if layout.pipeline > 1:
        fields["pipeline"] = {
            "stages": layout.pipeline,
            "activation_checkpoint_interval": int(layout.recompute == "full"),
        }
    return json.dumps(fields, indent=1) + "\n"


WRITERS: dict[str, Callable[[Training], str]] = {
    "megatron": megatron,
    "nemo": nemo,
    "torchtitan": torchtitan,
    "deepspeed": deepspeed,
}


def writer_of(runtime: str) -> Callable[[Training], str]:
    """Return the function that writes the settings with which a runtime runs a layout.

    Raises
    ------
    OptionError
        If the runtime has no settings.
    """
    if runtime not in WRITERS:
        rule = f"settings are written for {one_of(runtime, WRITERS)}"
        raise OptionError(f"runtime = {shown(runtime)}: {rule}")
    return WRITERS[runtime]
