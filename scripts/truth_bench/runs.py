"""Profiles of the models as pipelines need them, and measured runs of placements on two processes."""

from __future__ import annotations

import ctypes
import datetime
import os
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

import partitioner as pt
from partitioner.integrations.torch import links, profile
from partitioner.integrations.torch.pipelines import stages_of
from partitioner.integrations.torch.verification import MeasuredRun, measure_pipeline
from truth_bench.models import MODELS

DEVICES = pt.Devices.accelerated(2, cpus=0)
FORWARD, BACKWARD = ("inference",), ("gpipe", "1f1b")
COUNTS = 3, 9  # microbatches; the time per sample is that of the last six
MOST_MAPPED, TRIM, TRIMMED_FROM = -4, -1, 2**31 - 1  # parameters of mallopt in glibc, and bytes
MOST_TRIES = 2  # of a run beside which other programs were running


@dataclass(frozen=True, eq=False)
class ProfiledModel:
    """A model and its graph, with the times that it has beside another process of the same kind.

    Parameters
    ----------
    model, args
        The model, and the arguments of a call of it for a microbatch.
    scoring
        The loss and its target, by the names of the arguments of `measure_pipeline`; empty for inference.
    graph
        The measured graph, by operators.
    """

    model: Any
    args: tuple[Any, ...]
    scoring: Mapping[str, Any]
    graph: pt.Graph

    @property
    def schedules(self) -> tuple[str, ...]:
        """The schedules that can run it."""
        return BACKWARD if self.scoring else FORWARD

    def run(
        self, placement: Mapping[Any, str], schedule: str, rounds: int, tries: int = MOST_TRIES
    ) -> MeasuredRun:
        """Return a measured run of a placement, again while it is in doubt: the least disturbed one."""
        stages = stages_of(self.model, self.args, self.graph, placement)
        given: dict[str, Any] = {"microbatches": COUNTS, "rounds": rounds, **self.scoring}
        found: list[MeasuredRun] = []
        while len(found) < tries and (not found or found[-1].doubt):
            found.append(measure_pipeline(stages, self.args, schedule=schedule, **given))
        return min(found, key=lambda run: 1.0 if run.foreign is None else run.foreign)


def profiled(name: str, training: bool, bandwidth: float, seconds: float, cache: str | None) -> ProfiledModel:
    """Return a model by name with its profile, as one process of two on this machine has it."""
    torch.manual_seed(0)
    model, args, loss, target = MODELS[name]()
    model.train(training)
    given: dict[str, Any] = {"clock": "elapsed", "beside": 1, "time_limit": seconds, "cache": cache}
    if training:
        given |= {"loss": loss, "targets": (target,), "accumulate": True}
    graph = profile(model, args, bandwidth=bandwidth, training=training, **given).graph
    return ProfiledModel(model, args, {"loss": loss, "target": target} if training else {}, graph)


def prepare() -> None:
    """Let torch have one thread, and let this process and its forks keep the memory that they free.

    Glibc gives large tensors back to the system when they are freed, and the system clears each page when it
    is used again; allocators that are recommended for torch on CPUs, such as jemalloc, keep them.
    """
    torch.set_num_threads(1)
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(MOST_MAPPED, 0)
        library.mallopt(TRIM, TRIMMED_FROM)


def solved(graph: pt.Graph) -> dict[Any, str]:
    """Return the plan of solve in which each parameter is on one device."""
    return dict(pt.solve(graph, DEVICES, constraints=pt.Constraints(whole=("ties",))).placement)


def bandwidth_here() -> float:
    """Return the bytes per second between two processes on this machine."""
    slope = float(np.array(links(DEVICES).transfers.slope)[0, 1])
    return 1e3 / slope if slope else 1e12


def circumstances(runs: Sequence[MeasuredRun]) -> str:
    """Return when and on what runs were measured, and what other programs used meanwhile."""
    foreign = [run.foreign for run in runs if run.foreign is not None]
    load = (
        f"{statistics.median(foreign):.0%} in the median, {max(foreign):.0%} at most"
        if foreign
        else "unknown"
    )
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    return f"{day}, {os.cpu_count()} cores, torch {torch.__version__}; cores that other programs used: {load}"
