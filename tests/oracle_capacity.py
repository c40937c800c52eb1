"""An exhaustive oracle: the most samples in flight over all placements, and the least time for as many.

It tries every placement, counts samples up one by one until a device is full, and shares no code with the
package's methods or its evaluator.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner import Devices, Graph
from partitioner.workload.constraints import NONE
from tests.oracle import is_chain, is_contiguous
from tests.oracle_pipelines import atoms, best_pipeline, chains, layouts
from tests.oracle_pipelines import values as stage_values
from tests.oracle_placements import Placements, feasible_placements, values
from tests.oracle_stages import Splits, Stage, memory_of_stages

TOLERANCE = 1 + 1e-9
Ints = NDArray[np.int64]


class Best(NamedTuple):
    """The most samples in flight, and the least time per sample of placements that hold as many."""

    samples: int
    time: float


def best_capacity(
    graph: Graph, devices: Devices, split: str, longest: float = np.inf, slowdown: float | None = None
) -> Best | None:
    """The best placement of a split in which no device takes longer than allowed; None if there is none.

    With `slowdown`, a sample may take that multiple of the least time of placements that hold one sample, or
    of all placements if none holds one.
    """
    placements = of_shape(feasible_placements(graph, devices), split)
    if not len(placements.device):
        return None
    samples, time = capacities(placements), values(placements, "throughput")
    if slowdown is not None:
        serving = samples >= min(1, int(samples.max()))
        longest = slowdown * float(time[serving].min())
    kept = time <= longest * TOLERANCE
    if not kept.any():
        return None
    most = int(samples[kept].max())
    return Best(most, float(time[kept & (samples == most)].min()))


def best_pipelined_capacity(graph: Graph, devices: Devices, schedule: str | None) -> Best | None:
    """The best chain under a schedule, on devices that may be in levels; None if there is none."""
    best = None
    for samples in itertools.count():
        grown = replace(graph, size=graph.size + samples * graph.cache)
        time = best_pipeline(grown, devices, schedule=schedule)
        if time is None:
            return best
        best = Best(samples, time)
    return best


def of_shape(placements: Placements, split: str) -> Placements:
    """Those placements that are of a split."""
    if split == "chain":
        return placements.only(is_chain(placements))
    if split == "convex":
        every = list(range(len(placements.kinds)))
        return placements.only(is_contiguous(placements, ~placements.graph.backward, every))
    return placements


def capacities(placements: Placements) -> Ints:
    """Shape (placements,): the largest number of samples with which no device is too full."""
    held = np.zeros(len(placements.device), dtype=np.int64)
    fits = np.ones(len(held), dtype=bool)
    while fits.any():
        grown = placements.graph.size + (held.max() + 1) * placements.graph.cache
        for d, kind in enumerate(placements.kinds):
            assert kind.memory is not None
            fits &= (placements.device == d) @ grown <= kind.memory * TOLERANCE
        held[fits] = held.max() + 1
    return held


def with_cache(graph: Graph, devices: Devices, rng: np.random.Generator) -> tuple[Graph, Devices]:
    """The workload with caches on some nodes, and memory of every device for few samples or many."""
    n = len(graph)
    cache = rng.choice([0.0, 0.25, 0.5, 1.0, 1.0, 3.0], n)
    if not cache.any():
        cache[int(rng.integers(n))] = 1.0
    share = float(graph.size.sum()) / len(devices.names)
    memory = [
        float(np.ceil(rng.choice([0.8, 1.2, 2.0, 4.0]) * share + rng.integers(8))) for _ in devices.kinds
    ]
    kinds = tuple(replace(kind, memory=each) for kind, each in zip(devices.kinds, memory, strict=True))
    return replace(graph, cache=cache), replace(devices, kinds=kinds)


def best_shared_capacity(
    graph: Graph, devices: Devices, replicas: int, schedule: str | None, longest: float = np.inf
) -> Best | None:
    """The best chain of stages of at most `replicas` devices each, which take the samples in turn.

    Of n samples the first device of a stage on r devices keeps the 1st, the (r + 1)th and so on.
    """
    best, atom = Best(-1, np.inf), atoms(graph, NONE)
    splits: dict[int, Splits] = {}
    for stages in layouts(devices, replicas, int(atom.max()) + 1):
        count = len(stages)
        if count not in splits:
            splits[count] = Splits(graph, chains(graph, atom, count, NONE), count)
        time = stage_values(splits[count], devices, stages, NONE, schedule, None, "throughput")
        held = _held_by_turns(splits[count], devices, stages, schedule)
        kept = np.flatnonzero((time <= longest * TOLERANCE) & (time < np.inf) & (held >= 0))
        for samples, spent in zip(held[kept].tolist(), time[kept].tolist(), strict=True):
            best = max(best, Best(samples, spent), key=lambda one: (one.samples, -one.time))
    return None if best.samples < 0 else best


def _held_by_turns(splits: Splits, devices: Devices, stages: list[Stage], schedule: str | None) -> Ints:
    """Shape (splits,): the most samples with which every device fits, -1 if it does not fit without any."""
    own, cache = memory_of_stages(splits, stages, schedule, None), splits.total(splits.graph.cache)
    limit = np.array([devices.kinds[stage.kind].memory for stage in stages], dtype=np.float64)
    copies = np.array([len(stage.devices) for stage in stages])
    held, fits, samples = np.full(len(own), -1, dtype=np.int64), np.ones(len(own), dtype=bool), 0
    while fits.any():
        kept = np.array([len(range(0, samples, r)) for r in copies])
        fits &= (own + kept * cache <= limit * TOLERANCE).all(axis=1)
        held[fits] = samples
        samples += 1
    return held
