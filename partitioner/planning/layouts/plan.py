"""The public function `plan`: the layouts of a language model on a cluster, the fastest first."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from partitioner.base.argument_types import check_counts
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.named_devices import NamedDevice
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.changes import find_changes, other_devices
from partitioner.planning.layouts.costs import FIELDS, ModelCosts
from partitioner.planning.layouts.layout import Cluster
from partitioner.planning.layouts.question import (
    LATENCY,
    NETWORK,
    NODE,
    TRAINED,
    LayoutQuestion,
    asked_question,
)
from partitioner.planning.layouts.result import LayoutPlan
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.search import ClusterLayoutSearch
from partitioner.planning.layouts.space import divisors
from partitioner.planning.layouts.timing import LayoutRun
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Graph
from partitioner.workload.layer import ACCELERATOR, Layer

TOP, TIME_LIMIT = 5, 30.0
REFINED, LEAST = 3.0, 0.5  # seconds for the stages of a layout, and those below which none are sought


def plan(
    config: str | os.PathLike[str] | dict[str, Any],
    *,
    gpus: int | None = None,
    device: str | NamedDevice,
    global_batch: int,
    sequence: int,
    tokens_per_second: float | None = None,
    node: int = NODE,
    peer: float | None = None,
    network: float = NETWORK,
    latency: float = LATENCY,
    memory: float | None = None,
    dtype: str = "bfloat16",
    runtime: str = "any",
    top: int = TOP,
    time_limit: float | None = TIME_LIMIT,
    stop: StopEvent | None = None,
    explain: bool = False,
    instead: Sequence[str | NamedDevice] | None = None,
    **options: Unpack[LayoutOptions],
) -> LayoutPlan:
    """Return the fastest layouts of a language model on equal GPUs, with a bound over all layouts.

    The space has all degrees of tensor, pipeline, context, expert and data parallelism that take all GPUs,
    all numbers of stages on a device, microbatches of 1, 2, 4, ... sequences, schedules, what is computed
    again, and shares of states among replicas, as far as the runtime has them. Every row is simulated; a
    layout is left out only if a closed form shows that it is slower than all rows, or does not fit.

    Parameters
    ----------
    config
        The model's ``config.json``, or what it holds.
    gpus
        How many GPUs there are; a layout takes all of them. None for the fewest, or the fewest whole servers,
        on which a layout has `tokens_per_second`.
    device
        The name of a GPU, or its figures.
    global_batch, sequence
        Sequences of a batch, and tokens of a sequence.
    tokens_per_second
        The rate that is wanted in place of a number of GPUs.
    node
        GPUs of a server.
    peer, network
        Bytes a second that a GPU sends to others of its server (None: those of the device), and to those of
        other servers.
    latency
        Seconds that a message between servers takes in addition.
    memory
        Bytes of a GPU that may be used; None for all.
    dtype
        The type of the factors of products.
    runtime
        ``"any"``, ``"megatron"``, ``"nemo"``, ``"torchtitan"`` or ``"deepspeed"``: only what it can run.
    top
        How many layouts are returned.
    time_limit
        Seconds after which the best layouts so far are returned; None for no limit.
    stop
        As in :func:`partitioner.solve`.
    explain
        Whether to find what changes would buy: a faster network, more memory, products in FP8, larger
        servers, more GPUs, other GPUs. The ranking then has half of the time limit.
    instead
        The GPUs that `explain` tries in place of these, None for the usual ones of data centres.
    **options
        Types of numbers and the optimizer: :class:`partitioner.formats.llm.layout_options.LayoutOptions`.

    Returns
    -------
    LayoutPlan
        The layouts, the fastest first.

    Raises
    ------
    WorkloadError
        If the config breaks a rule.
    OptionError
        If an option is not in its range.
    InfeasibleError
        If no layout fits the memory, or the runtime has none; it says which misses by the fewest bytes. If no
        number of GPUs has the rate that is wanted.
    NoPlanFound
        If the time was over before one was found.

    Examples
    --------
    >>> config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4}
    >>> config |= {"vocab_size": 128, "n_positions": 64}
    >>> found = plan(config, gpus=2, device="A100-80", global_batch=8, sequence=64)
    >>> found.best.layout.gpus, found.bound <= found.best.seconds
    (2, True)
    """
    clock, started = Clock(math.inf if time_limit is None else time_limit), time.perf_counter()
    check_counts(top=top)
    question = asked_question(
        config,
        gpus=gpus,
        device=device,
        global_batch=global_batch,
        sequence=sequence,
        tokens_per_second=tokens_per_second,
        node=node,
        peer=peer,
        network=network,
        latency=latency,
        memory=memory,
        dtype=dtype,
        runtime=runtime,
        options=options,
    )
    devices = other_devices(instead, question.cluster) if explain else []
    with Interruption(stop) as interruption:
        if tokens_per_second is not None:
            question = fewest_gpus(question, tokens_per_second, clock, interruption)
        own = Clock(clock.left / 2) if explain else clock
        search = question.search(top, own, interruption)
        runs = search.search(*question.layouts())
        if not runs and not search.whole:
            raise NoPlanFound(f"no layout was found among the first {search.tried} that were looked at")
        if not runs:
            raise InfeasibleError(_why_none(search, runtime, question.cluster))
        equal = runs
        if RUNTIMES[runtime].uneven:
            runs = _refined(runs, own, interruption)
        changes = find_changes(question, equal, devices, clock, interruption) if explain else ()
    return LayoutPlan(
        tuple(map(question.row, runs)),
        min(search.least / MS_PER_SECOND, runs[0].seconds),
        search.tried,
        search.simulated,
        search.whole,
        question.cluster,
        global_batch,
        sequence,
        runtime,
        time.perf_counter() - started,
        changes,
        tokens_per_second,
        tuple(runs),
    )


def _refined(runs: list[LayoutRun], clock: Clock, stop: StopEvent) -> list[LayoutRun]:
    """Return the runs with unequal stages where these are faster, the fastest first.

    They are sought for the first few; the others keep their equal stages.
    """
    first, others = runs[:TOP], runs[TOP:]
    each = min(REFINED, clock.left / (2 * len(first)))
    found = [refined(run, each, stop) if each > LEAST and not stop.is_set() else run for run in first]
    return sorted([*found, *others], key=lambda run: (run.simulated[0], run.layout))


def _why_none(search: ClusterLayoutSearch, runtime: str, cluster: Cluster) -> str:
    if search.nearest is None:
        return f"runtime {runtime} has no layout of this model and batch on {cluster.gpus} GPUs"
    missing, run = search.nearest
    need = f"the nearest, {run.layout.name}, ZeRO {run.layout.zero}, recomputation {run.layout.recompute}"
    return f"none of {search.tried} layouts fits the memory; {need}, lacks {missing / 1e9:.3g} GB on a GPU"


def refined(run: LayoutRun, seconds: float, stop: StopEvent | None) -> LayoutRun:
    """Return the run with the stages that the exact methods find, or the same if none are faster."""
    if run.layout.pipeline == 1:
        return run
    layout = run.layout
    options: dict[str, Any] = {"schedule": layout.schedule, "microbatches": run.microbatches}
    if layout.virtual_stages > 1:
        options["virtual_stages"] = layout.virtual_stages
    try:
        found = solve(
            _graph(run),
            Devices((DeviceKind(ACCELERATOR, layout.pipeline, memory=run.costs.cluster.memory),)),
            "makespan",
            time_limit=seconds,
            stop=stop,
            **options,
        )
    except (InfeasibleError, NoPlanFound, OptionError):
        return run
    borders = _borders(found, len(run.costs.layer_names))
    if len(borders) != layout.stages + 1:
        return run
    other = replace(run, borders=borders)
    return other if other.fits and other.simulated[0] < run.simulated[0] else run


def _graph(run: LayoutRun) -> Graph:
    """Return the chain of the layers, with times and memory under the layout."""
    costs = run.costs.layers(run.layout)
    fields = {name: getattr(costs, name).tolist() for name in FIELDS}
    layers = [
        Layer(str(i), **{name: values[i] for name, values in fields.items()})
        for i in range(len(run.costs.layer_names))
    ]
    return Graph.chain(layers, bandwidth=run.costs.cluster.bandwidth(run.layout.apart), training=True)


def _borders(plan: Plan, layers: int) -> tuple[int, ...]:
    """Return the first layer of every stage of a plan, and the number of layers."""
    if plan.stage_of is not None:
        stage = np.array([plan.stage_of[str(i)] for i in range(layers)])
    else:
        place = {name: i for i, name in enumerate(plan.stages)}
        stage = np.array([place[plan.placement[str(i)]] for i in range(layers)])
    return (0, *(np.flatnonzero(np.diff(stage)) + 1).tolist(), layers)


def fewest_gpus(
    question: LayoutQuestion, tokens_per_second: float, clock: Clock, interruption: Interruption
) -> LayoutQuestion:
    """Return the question with the fewest GPUs on which a layout of equal stages has a rate.

    Numbers of GPUs are those that divide a server, and whole servers up to one GPU for each sequence of the
    batch and device of a server. From the number that suffices at the devices' peak, all layouts of each are
    ranked until one has the rate; that a number suffices is no proof for larger ones.

    Parameters
    ----------
    question
        What is trained; the number of GPUs of its cluster does not matter.
    tokens_per_second
        The rate that is wanted, of all GPUs together.
    clock, interruption
        When to end without an answer.

    Raises
    ------
    InfeasibleError
        If it is proven that none of the numbers suffices, however layers are dealt.
    NoPlanFound
        If equal stages have the rate on none of them, or the clock expires before; it names the number that
        was reached.
    """
    reached, best, most = 0, 0.0, 0.0
    for gpus in _numbers(question, tokens_per_second):
        asked = replace(question, cluster=replace(question.cluster, gpus=gpus))
        search = asked.search(1, clock, interruption)
        runs = search.search(*asked.layouts())
        rate = asked.tokens / runs[0].seconds if runs else 0.0
        if rate >= tokens_per_second:
            return asked
        if not search.whole:
            raise NoPlanFound(f"{gpus} GPUs were reached within the time, and are too few or not looked at")
        reached, best = gpus, max(best, rate)
        most = max(most, asked.tokens / search.least * MS_PER_SECOND)
    reach = f"tokens_per_second = {tokens_per_second:,.0f}: up to {reached} GPUs have"
    work = f"and a batch of {question.global_batch} sequences has no work for more"
    if most >= tokens_per_second:
        raise NoPlanFound(f"{reach} {best:,.0f} in equal stages, {work}")
    raise InfeasibleError(f"{reach} at most {most:,.0f}, {work}")


def _numbers(question: LayoutQuestion, rate: float) -> Iterator[int]:
    """Yield the numbers of GPUs, smallest first, whose peak is enough."""
    cluster = question.cluster
    flops = TRAINED * ModelCosts(question.decoder, cluster, question.sequence, question.dtype).flops()
    least = rate * flops / question.sequence / cluster.device.speed(question.dtype)
    yield from (gpus for gpus in divisors(cluster.node)[:-1] if gpus >= least)
    first = max(1, math.ceil(least / cluster.node))
    for servers in range(first, question.global_batch + 1):
        yield servers * cluster.node
