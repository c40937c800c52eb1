"""The layers of a pipeline of unlike GPUs dealt by the exact methods, and a batch shared among pipelines."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.interruption import StopEvent
from partitioner.formats.several_kinds import joined
from partitioner.planning.pools.pool import PoolPart
from partitioner.planning.pools.training import STATES, PartRun, PoolCosts, PoolLayout, pipeline_of
from partitioner.planning.solve import solve
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.layer import Layer

SCHEDULE = "1f1b"


def deal(
    costs: PoolCosts,
    layout: PoolLayout,
    part: PoolPart,
    share: int,
    seconds: float | None,
    stop: StopEvent | None,
) -> PartRun | None:
    """Return a pipeline of a part with the fastest slowest stage that the exact methods find.

    Stages that would have no layer are left out. None if no dealing that fits is found.
    """
    if part.stages == 1:
        alone = pipeline_of(costs, layout, part, (0,), (0, len(costs.of(part.kinds[0]).layer_names)), share)
        return alone if alone.fits else None
    found = [_dealt(costs, layout, part, share, rate, seconds, stop) for rate in _rates(costs, part)]
    fitting = [run for run in found if run is not None and run.fits]
    return min(fitting, key=lambda run: run.rough(share), default=None)


def _rates(costs: PoolCosts, part: PoolPart) -> set[float]:
    """Return the bytes a second of the links between stages, of which a dealing takes all to have one."""
    own = {
        costs.of(kind).cluster.bandwidth(t * part.copies + 1)
        for kind, t, g in zip(part.kinds, part.tensor, part.groups, strict=True)
        if g > 1
    }
    return own | ({costs.network} if len(part.kinds) > 1 else set())


def _dealt(
    costs: PoolCosts,
    layout: PoolLayout,
    part: PoolPart,
    share: int,
    rate: float,
    seconds: float | None,
    stop: StopEvent | None,
) -> PartRun | None:
    """Return a pipeline whose slowest stage is the fastest where all links have one rate."""
    graph, devices = _question(costs, layout, part, rate)
    try:
        plan = solve(
            graph, devices, "throughput", schedule=SCHEDULE, microbatches=share, time_limit=seconds, stop=stop
        )
    except (InfeasibleError, NoPlanFound):
        return None
    count = len(graph.ids) // 2
    names = [plan.placement[str(i)] for i in range(count)]
    of_device = {kind.device(i): k for k, kind in enumerate(devices.kinds) for i in range(kind.count)}
    borders = (0, *(i for i in range(1, count) if names[i] != names[i - 1]), count)
    kinds = tuple(of_device[names[i]] for i in borders[:-1])
    return pipeline_of(costs, layout, part, kinds, borders, share)


def _question(costs: PoolCosts, layout: PoolLayout, part: PoolPart, rate: float) -> tuple[Graph, Devices]:
    """Return the chain of the layers with times on every kind, and the groups of a pipeline as devices.

    Memory is that of all GPUs of a group.
    """
    graphs = {}
    for k, (kind, t) in enumerate(zip(part.kinds, part.tensor, strict=True)):
        each = costs.layers(layout, part, k)
        states = {name: t * getattr(each, name) for name in (*STATES, "activations", "workspace")}
        layers = [
            Layer(
                str(i),
                forward=float(each.forward[i]),
                backward=float(each.backward[i]),
                inputs=(str(i - 1),) * (i > 0),
                output=float(each.output[i]),
                parameters=float(states["parameters"][i]),
                gradients=float(states["gradients"][i]),
                optimizer=float(states["optimizer"][i]),
                activations=float(states["activations"][i]),
                workspace=float(states["workspace"][i]),
            )
            for i in range(len(each.forward))
        ]
        graphs[kind.name] = Graph.chain(layers, bandwidth=rate, training=True)
    kinds = tuple(
        DeviceKind(kind.name, g, memory=t * kind.memory)
        for kind, t, g in zip(part.kinds, part.tensor, part.groups, strict=True)
    )
    return joined(graphs), Devices(kinds, route="direct")


def share_batch(runs: tuple[PartRun, ...], sequences: int, microbatch: int) -> tuple[int, ...] | None:
    """Return how many microbatches each part's pipelines run, so that the slowest ends as early as possible.

    All pipelines of a part run the same number, at least one. None if the batch cannot be divided so.
    """
    total, odd = divmod(sequences, microbatch)
    copies = [run.part.copies for run in runs]
    if odd or total < sum(copies):
        return None
    best = min(
        _divided(runs, copies, total),
        key=lambda shares: max(run.rough(share) for run, share in zip(runs, shares, strict=True)),
        default=None,
    )
    return best


def _divided(runs: tuple[PartRun, ...], copies: list[int], total: int) -> Iterator[tuple[int, ...]]:
    """Yield the divisions of microbatches near the one that is proportional to speed."""
    speed = np.array([each / float(run.loads.max()) for each, run in zip(copies, runs, strict=True)])
    ideal = total * speed / speed.sum() / np.array(copies)
    reach = sum(run.part.stages for run in runs) + max(copies)
    windows = [
        range(max(1, math.floor(at) - reach), min(total // each, math.ceil(at) + reach) + 1)
        for at, each in zip(ideal, copies, strict=True)
    ]
    for chosen in product(*windows[:-1]):
        last, odd = divmod(total - sum(m * c for m, c in zip(chosen, copies, strict=False)), copies[-1])
        if last >= 1 and not odd:
            yield (*chosen, last)


def with_shares(runs: tuple[PartRun, ...], shares: tuple[int, ...]) -> tuple[PartRun, ...]:
    """Return the pipelines with other numbers of microbatches."""
    return tuple(replace(run, share=share) for run, share in zip(runs, shares, strict=True))
