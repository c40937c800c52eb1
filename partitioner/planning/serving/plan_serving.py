"""The public function `plan_serving`: how a pool of GPUs serves a language model."""

from __future__ import annotations

import heapq
import math
import os
import time
from itertools import islice
from typing import Any, Unpack

from partitioner.base.argument_types import check_counts
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, shown
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.formats.devices_in_place import check_rate
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.question import decoder_to_train
from partitioner.planning.pools.pool import Pool, PooledKind, kinds_of, partitions
from partitioner.planning.serving.costs import ServingCosts, ServingLoad
from partitioner.planning.serving.result import ServingPlan, ServingRow
from partitioner.planning.serving.search import BlockFound, ServingSearch

NODE, NETWORK, TOP, TIME_LIMIT = 8, 25e9, 5, 60.0


def plan_serving(
    config: str | os.PathLike[str] | dict[str, Any],
    pool: Pool,
    *,
    prompt: int,
    generate: int,
    ttft: float | None = None,
    tpot: float | None = None,
    users: int | None = None,
    node: int = NODE,
    network: float = NETWORK,
    dtype: str = "bfloat16",
    top: int = TOP,
    time_limit: float | None = TIME_LIMIT,
    stop: StopEvent | None = None,
    **options: Unpack[LayoutOptions],
) -> ServingPlan:
    """Return the layouts with the most tokens per second of a server on a pool of GPUs, unlike ones too.

    The space has, for every kind of GPU, all degrees of tensor parallelism, all numbers of copies and of
    stages, expert degrees among copies, and batches of 1, 2, 4, ... sequences; the kinds serve in one
    pipeline, whose layers the exact methods deal by speed and memory, or each on its own. Prompts and tokens
    are mixed at all times, so that a request takes a stage its prompt's time and its share of each step.

    Parameters
    ----------
    config
        The model's ``config.json``, or what it holds.
    pool
        The number of GPUs of every kind by name, or number and usable bytes of one's memory.
    prompt, generate
        Tokens of a prompt, and tokens generated after it.
    ttft, tpot
        Milliseconds until the first token, and for each further token, at most; None for no limit. The first
        token waits for a step in every stage.
    users
        1 for one user, whose tokens come as soon as possible from one pipeline, with room for one context:
        what does not fit the GPUs may lie on a CPU of the pool. None for as many as bring the most.
    node
        GPUs of a server.
    network
        Bytes a second between stages, and between servers.
    dtype
        The type of the factors of products.
    top
        How many layouts are returned.
    time_limit
        Seconds after which the best layouts so far are returned; None for no limit.
    stop
        As in :func:`partitioner.solve`.
    **options
        Types of weights and cache: :class:`partitioner.formats.llm.layout_options.LayoutOptions`.

    Returns
    -------
    ServingPlan
        The layouts, those with the most tokens per second first.

    Raises
    ------
    WorkloadError
        If the config breaks a rule.
    OptionError
        If an option is not in its range.
    InfeasibleError
        If it is proven that no layout fits the memory within the limits.
    NoPlanFound
        If none was found, in the time or because the dealing of layers with the most tokens is too slow.

    Examples
    --------
    >>> config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4}
    >>> config |= {"vocab_size": 128, "n_positions": 64}
    >>> found = plan_serving(config, {"L40S": 1}, prompt=32, generate=16, top=1)
    >>> found.best.tokens_per_second <= found.bound, found.best.unused(found.pool)
    (True, {})
    """
    clock, started = Clock(math.inf if time_limit is None else time_limit), time.perf_counter()
    check_counts(node=node, top=top)
    if users not in (None, 1):
        raise OptionError(f"users = {shown(users)}: must be 1 or None")
    limits = (math.inf if limit is None else limit for limit in (ttft, tpot))
    load = ServingLoad(prompt, generate, *limits)
    check_rate("network", network)
    costs = ServingCosts(decoder_to_train(config), load, dtype, network, options)
    kinds = kinds_of(pool, node, dtype)
    with Interruption(stop) as interruption:
        search = ServingSearch(costs, top, clock, interruption, users == 1)
        rows, bound = _alone(search, kinds) if users == 1 else _combined(search, kinds, top)
    if not rows:
        _refuse(search, kinds, proven=bound == 0)
    return ServingPlan(
        tuple(rows),
        max(bound, rows[0].tokens_per_second),
        search.tried,
        search.solved,
        search.whole,
        kinds,
        load,
        users,
        time.perf_counter() - started,
    )


def _alone(search: ServingSearch, kinds: tuple[PooledKind, ...]) -> tuple[list[ServingRow], float]:
    """Return the rows of one pipeline for one user."""
    found = search.block(kinds)
    return [ServingRow((each,)) for each in found.best], found.bound


def _combined(
    search: ServingSearch, kinds: tuple[PooledKind, ...], top: int
) -> tuple[list[ServingRow], float]:
    """Return the rows of the best ways to divide the kinds into pipelines, and the bound over all."""
    rows, bound = [], 0.0
    for parts in partitions(kinds):
        blocks = [search.block(part) for part in parts]
        bound = max(bound, sum(block.bound for block in blocks))
        rows += _rows([block for block in blocks if block.best], top)
    unique = {row.name: row for row in rows}.values()
    return heapq.nlargest(top, unique, key=lambda row: row.tokens_per_second), bound


def _rows(blocks: list[BlockFound], top: int) -> list[ServingRow]:
    """Return the best pipelines of each block side by side; of a single block its best ones."""
    if len(blocks) == 1:
        return [ServingRow((each,)) for each in islice(blocks[0].best, top)]
    return [ServingRow(tuple(block.best[0] for block in blocks))] if blocks else []


def _refuse(search: ServingSearch, kinds: tuple[PooledKind, ...], proven: bool) -> None:
    if not search.whole:
        raise NoPlanFound(f"no layout was found among the first {search.tried} that were looked at")
    if not proven:
        raise NoPlanFound(f"none of {search.tried} layouts was found to be within the limits; others may be")
    have = ", ".join(f"{kind.count} {kind.name}" for kind in kinds)
    raise InfeasibleError(
        f"none of {search.tried} layouts on {have} fits the memory within the limits of time"
    )
