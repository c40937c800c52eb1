"""The public function `plan`: the layouts of a language model on a cluster, the fastest first."""

from __future__ import annotations

import math
import os
import time
from dataclasses import replace
from typing import Any, Unpack

from partitioner.base.argument_types import check_counts, check_word
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError
from partitioner.base.files import path_name, read_json
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.estimation.device_time import MS_PER_SECOND
from partitioner.estimation.named_devices import NamedDevice, named_device
from partitioner.formats.hugging_face import decoder_of
from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.layout import Cluster
from partitioner.planning.layouts.refine import refined
from partitioner.planning.layouts.result import LayoutPlan, LayoutRow
from partitioner.planning.layouts.runtimes import RUNTIMES
from partitioner.planning.layouts.search import ClusterLayoutSearch
from partitioner.planning.layouts.space import LayoutSpace
from partitioner.planning.layouts.timing import LayoutRun

NODE, NETWORK, LATENCY = 8, 25e9, 5e-6
TOP, TIME_LIMIT = 5, 30.0
REFINED, LEAST = 3.0, 0.5  # seconds for the stages of a layout, and those below which none are sought
TRAINED = 3  # passes' worth of the forward operations that a step of training has


def plan(
    config: str | os.PathLike[str] | dict[str, Any],
    *,
    gpus: int,
    device: str | NamedDevice,
    global_batch: int,
    sequence: int,
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
        How many GPUs there are; a layout takes all of them.
    device
        The name of a GPU, or its figures.
    global_batch, sequence
        Sequences of a batch, and tokens of a sequence.
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
        If no layout fits the memory, or the runtime has none; it says which misses by the fewest bytes.

    Examples
    --------
    >>> config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4}
    >>> config |= {"vocab_size": 128, "n_positions": 64}
    >>> found = plan(config, gpus=2, device="A100-80", global_batch=8, sequence=64)
    >>> found.best.layout.gpus, found.bound <= found.best.seconds
    (2, True)
    """
    clock, started = Clock(math.inf if time_limit is None else time_limit), time.perf_counter()
    check_counts(gpus=gpus, global_batch=global_batch, sequence=sequence, top=top)
    check_word("runtime", runtime, tuple(RUNTIMES))
    decoder, figures = _decoder(config), named_device(device)
    cluster = _cluster(figures, gpus, node, peer, network, latency, memory)
    costs = ModelCosts(decoder, cluster, sequence, dtype, options)
    space = LayoutSpace(
        decoder, cluster, global_batch, RUNTIMES[runtime], options.get("attention") == "unfused"
    )
    with Interruption(stop) as interruption:
        search = ClusterLayoutSearch(costs, global_batch, top, clock, interruption)
        runs = search.search(space)
        if RUNTIMES[runtime].uneven:
            runs = _refined(runs, clock, interruption)
    if not runs:
        raise InfeasibleError(_why_none(search, runtime, cluster))
    flops = TRAINED * costs.flops() * global_batch
    return LayoutPlan(
        tuple(row_of(run, flops, global_batch * sequence) for run in runs),
        min(search.least / MS_PER_SECOND, runs[0].seconds),
        search.tried,
        search.simulated,
        search.whole,
        cluster,
        global_batch,
        sequence,
        runtime,
        time.perf_counter() - started,
    )


def row_of(run: LayoutRun, flops: float, tokens: int) -> LayoutRow:
    """Return the row of a run, of a batch with `flops` operations and `tokens` tokens."""
    cluster = run.costs.cluster
    rate = flops / run.seconds / cluster.gpus
    return LayoutRow(
        run.layout,
        run.seconds,
        tokens / run.seconds,
        rate / 1e12,
        rate / cluster.device.speed(run.costs.dtype),
        float(run.memory.max()),
        run.simulated[2],
        run.exposed,
        run.blocks,
    )


def _refined(runs: list[LayoutRun], clock: Clock, stop: StopEvent) -> list[LayoutRun]:
    """Return the runs with unequal stages where these are faster, the fastest first."""
    each = min(REFINED, clock.left / (2 * max(1, len(runs))))
    found = [refined(run, each, stop) if each > LEAST and not stop.is_set() else run for run in runs]
    return sorted(found, key=lambda run: (run.simulated[0], run.layout))


def _decoder(config: str | os.PathLike[str] | dict[str, Any]) -> Decoder:
    """Return the model of a config, without the blocks that predict further tokens."""
    content, source = (
        (config, "config") if isinstance(config, dict) else (read_json(config), path_name(config))
    )
    return replace(decoder_of(content, source), predictors=())


def _cluster(
    device: NamedDevice,
    gpus: int,
    node: int,
    peer: float | None,
    network: float,
    latency: float,
    memory: float | None,
) -> Cluster:
    own = peer if peer is not None else device.peer or device.host or network
    return Cluster(gpus, device, node, own, network, latency, device.memory if memory is None else memory)


def _why_none(search: ClusterLayoutSearch, runtime: str, cluster: Cluster) -> str:
    if search.nearest is None:
        return f"runtime {runtime} has no layout of this model and batch on {cluster.gpus} GPUs"
    missing, run = search.nearest
    need = f"the nearest, {run.layout.name}, ZeRO {run.layout.zero}, recomputation {run.layout.recompute}"
    return f"none of {search.tried} layouts fits the memory; {need}, lacks {missing / 1e9:.3g} GB on a GPU"
