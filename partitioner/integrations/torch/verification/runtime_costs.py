"""What a runtime of pipelines adds to the passes of its stages, measured with two small pipelines.

Two stages of equal layers, a transformer's layer and linear ones, run under 1F1B. F and B are the times of a
stage's passes by themselves, which two processes measure without a pipeline. A batch of n microbatches takes

    (n + 1) (compute (F + B) + 2 pass_time + message)

in the simulation, for a small and a large pipeline, which gives the first two terms.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

from partitioner.integrations.torch.graphs.graph import graph_of
from partitioner.integrations.torch.pipelines.stages import stages_of
from partitioner.integrations.torch.verification.corrections import Corrections
from partitioner.integrations.torch.verification.measuring import measure_pipeline
from partitioner.integrations.torch.verification.model_passes import whole_passes

LAYERS = 4  # linear ones of each stage
HEAD_WIDTH = 64
# Rows and width of a microbatch: both passes of a stage take some 10 and 50 ms on a core, as real stages do.
# Passes of less than 1 ms are no guide: what a runtime adds to them is less than to a core that computes.
SHAPES = ((64, 384), (192, 640))
MICROBATCHES = 8
TURNS = 5
ROUNDS = 7


class CalibrationPipeline(NamedTuple):
    """A pipeline of two equal stages that a runtime is measured with, under 1F1B.

    Parameters
    ----------
    stages
        The two halves of a model, each a layer of a transformer's encoder, then linear layers and ReLU.
    sample, target
        Input and target of a microbatch; the loss is the mean squared error.
    """

    stages: tuple[Any, Any]
    sample: Any
    target: Any


BatchTime = Callable[[CalibrationPipeline, int], float]


def runtime_corrections(measure: BatchTime | None = None, *, message: float = 0.0) -> Corrections:
    """Return what a runtime adds to its passes on this machine, from two small pipelines.

    Passes by themselves and batches are measured in turn, so that what else runs on the machine for a while
    changes both; medians of the turns count.

    Parameters
    ----------
    measure
        Returns the ms of a batch of a pipeline with a number of microbatches in the runtime; None for the
        runtime of :class:`partitioner.integrations.torch.pipelines.PipelineRank`.
    message
        The ms of a message without data, which :func:`partitioner.integrations.torch.links` measures.
    """
    measure = measure or library_batch
    alone, piped = [], []
    for pipeline in (calibration_pipeline(*shape) for shape in SHAPES):
        turns = [(_alone(pipeline), measure(pipeline, MICROBATCHES)) for _ in range(TURNS)]
        own = median(passes for passes, _ in turns)
        alone.append(own)
        piped.append(own * median(batch / passes for passes, batch in turns) / (MICROBATCHES + 1))
    return solved_terms((alone[0], alone[1]), (piped[0], piped[1]), message)


def solved_terms(alone: tuple[float, float], piped: tuple[float, float], message: float = 0.0) -> Corrections:
    """Return the terms of the times of a stage's two passes, alone and in a pipeline, small and large.

    No term makes passes faster: a slope below 1 counts as 1.

    Examples
    --------
    >>> solved_terms((1.0, 11.0), (1.5, 12.5))
    Corrections(compute=1.1, message=0.0, transfer=1.0, pass_time=0.2)
    >>> solved_terms((1.0, 11.0), (1.5, 12.5), message=0.2).pass_time  # a message is not counted twice
    0.1
    """
    (small, large), (short, long) = alone, piped
    compute = max(1.0, (long - short) / (large - small))
    rest = min(short - compute * small, long - compute * large)
    return Corrections(round(compute, 6), message, 1.0, round(max(0.0, (rest - message) / 2), 6))


def calibration_pipeline(rows: int, width: int) -> CalibrationPipeline:
    """Return a pipeline of two stages of a width, each a transformer's layer and linear ones."""
    first, second = (_half(width) for _ in range(2))
    return CalibrationPipeline((first, second), torch.ones(rows, width), torch.ones(rows, width))


def _half(width: int) -> Any:
    linear = (nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(LAYERS))
    return nn.Sequential(nn.TransformerEncoderLayer(width, width // HEAD_WIDTH, dropout=0.0), *linear)


def _alone(pipeline: CalibrationPipeline) -> float:
    """Return the time of both passes of a stage: half of that of the model."""
    model = nn.Sequential(*pipeline.stages)
    found = whole_passes(model, (pipeline.sample,), loss=functional.mse_loss, targets=(pipeline.target,))
    return (found.forward + found.backward) / 2


def library_batch(pipeline: CalibrationPipeline, microbatches: int) -> float:
    """Return the ms of a batch in the library's runtime."""
    model, args, loss = nn.Sequential(*pipeline.stages), (pipeline.sample,), functional.mse_loss
    given: dict[str, Any] = {"training": True, "loss": loss, "targets": (pipeline.target,)}
    graph = graph_of(model, args, device="CPU", bandwidth=1e9, **given)  # its times are not used
    stages = stages_of(model, args, graph, _halved(graph))
    return measure_pipeline(
        stages,
        args,
        schedule="1f1b",
        microbatches=(1, microbatches),
        loss=loss,
        target=pipeline.target,
        rounds=ROUNDS,
    ).batches[1]


def _halved(graph: Any) -> dict[Any, str]:
    """Return the placement of each half on a device; a backward node is where its layer is."""
    half = [str(node.get("module", "")).partition(".")[0] for node in graph.extras.nodes]
    return {node: f"accelerator{int(name != '0')}" for node, name in zip(graph.ids, half, strict=True)}
