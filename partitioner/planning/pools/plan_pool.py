"""The public function `plan_pool`: how a pool of unlike GPUs trains a language model."""

from __future__ import annotations

import math
import os
import time
from typing import Any, Unpack

from partitioner.base.argument_types import check_counts
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.devices_in_place import check_rate
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.plan import TIME_LIMIT, TOP
from partitioner.planning.layouts.question import LATENCY, NETWORK, NODE, decoder_to_train
from partitioner.planning.pools.pool import Pool, PooledKind, kinds_of
from partitioner.planning.pools.result import PoolPlan, PoolRow
from partitioner.planning.pools.search import PoolSearch
from partitioner.planning.pools.training import PoolCosts


def plan_pool(
    config: str | os.PathLike[str] | dict[str, Any],
    pool: Pool,
    *,
    global_batch: int,
    sequence: int,
    node: int = NODE,
    network: float = NETWORK,
    latency: float = LATENCY,
    dtype: str = "bfloat16",
    top: int = TOP,
    time_limit: float | None = TIME_LIMIT,
    stop: StopEvent | None = None,
    **options: Unpack[LayoutOptions],
) -> PoolPlan:
    """Return the fastest layouts that train a language model on a pool of GPUs, unlike ones too.

    The kinds stand in one pipeline, whose layers the exact methods deal by speed and memory, or each in
    replicas of its own, which share the batch by their speed, or are left out. For every kind the space has
    all degrees of tensor parallelism and numbers of copies and groups, microbatches of 1, 2, 4, ...
    sequences, recomputation of whole layers, and shares of the optimizer's state among all replicas. The
    schedule is 1F1B. Every row is simulated.

    Parameters
    ----------
    config
        The model's ``config.json``, or what it holds.
    pool
        The number of GPUs of every kind by name, or number and usable bytes of one's memory. A server has
        GPUs of one kind.
    global_batch, sequence
        Sequences of a batch, and tokens of a sequence.
    node
        GPUs of a server.
    network
        Bytes a second that a GPU sends to those of other servers.
    latency
        Seconds that a message between servers takes in addition.
    dtype
        The type of the factors of products.
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
    PoolPlan
        The layouts, the fastest first, with a bound over all of them.

    Raises
    ------
    WorkloadError
        If the config breaks a rule.
    OptionError
        If an option is not in its range.
    InfeasibleError
        If it is proven that the states of the model fit no layout.
    NoPlanFound
        If no layout was found, in the time or because no dealing of the layers fits.

    Examples
    --------
    >>> config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4}
    >>> config |= {"vocab_size": 128, "n_positions": 64}
    >>> found = plan_pool(config, {"A100-80": 1, "L40S": 1}, global_batch=8, sequence=64)
    >>> found.bound <= found.best.seconds, sum(found.best.pipelines[0].used.values()) > 0
    (True, True)
    """
    clock, started = Clock(math.inf if time_limit is None else time_limit), time.perf_counter()
    check_counts(global_batch=global_batch, sequence=sequence, node=node, top=top)
    check_rate("network", network)
    kinds = kinds_of(pool, node, dtype)
    costs = PoolCosts(decoder_to_train(config), sequence, dtype, network, latency, options)
    with Interruption(stop) as interruption:
        search = PoolSearch(costs, global_batch, top, clock, interruption)
        runs = search.search(kinds)
    if not runs:
        _refuse(search, kinds)
    tokens = global_batch * sequence
    return PoolPlan(
        tuple(PoolRow.of(run, tokens) for run in runs),
        min(search.least / MS_PER_SECOND, runs[0].seconds),
        search.tried,
        search.simulated,
        search.whole,
        kinds,
        global_batch,
        sequence,
        time.perf_counter() - started,
    )


def _refuse(search: PoolSearch, kinds: tuple[PooledKind, ...]) -> None:
    if not search.whole:
        raise NoPlanFound(f"no layout was found among the first {search.tried} that were looked at")
    have = ", ".join(f"{kind.count} {kind.name}" for kind in kinds)
    if search.may_fit or not search.tried:
        raise NoPlanFound(f"none of {search.tried} layouts on {have} was found to fit; others may")
    raise InfeasibleError(f"the states of the model fit none of {search.tried} layouts on {have}")
