"""The public function `plan_serving`: how a pool of GPUs serves a language model."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping
from typing import Any, Unpack

from partitioner.base.argument_types import check_counts, check_word
from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, shown
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.formats.devices_in_place import check_rate
from partitioner.formats.llm.layout_options import LayoutOptions
from partitioner.planning.layouts.question import decoder_to_train
from partitioner.planning.pools.pool import Pool, PooledKind, kinds_of
from partitioner.planning.serving.costs import ServingCosts, ServingLoad
from partitioner.planning.serving.fewest import fewest
from partitioner.planning.serving.on_pool import SERVERS, served
from partitioner.planning.serving.result import ServingPlan
from partitioner.planning.serving.search import ServingSearch
from partitioner.workload.device_validation import is_amount

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
    servers: str = "any",
    requests_per_second: float | None = None,
    prices: Mapping[str, float] | None = None,
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
    stages, expert degrees among copies, and batches of 1, 2, 3, 4, 6, ... sequences; the kinds serve in one
    pipeline, whose layers the exact methods deal by speed and memory, or each on its own. Prompts and tokens
    are mixed at all times, so that a request takes a stage its prompt's time and its share of each step; or
    servers of one kind each take prompts, and send their caches to others that generate.

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
    servers
        ``"same"`` for prompts and generated tokens on the same servers, ``"separate"`` for either on servers
        of its own, ``"any"`` for what is better.
    requests_per_second
        Find the smallest part of the pool that answers these requests; None to use all of it.
    prices
        With `requests_per_second`: the price of a GPU by kind, for the cheapest part; None for the
        fewest GPUs.
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
        The layouts, those with the most tokens per second first, on all of the pool or on the part of it.

    Raises
    ------
    WorkloadError
        If the config breaks a rule.
    OptionError
        If an option is not in its range.
    InfeasibleError
        If it is proven that no layout fits the memory within the limits, or has the rate.
    NoPlanFound
        If none was found in the time.

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
    check_word("servers", servers, SERVERS)
    if users not in (None, 1):
        raise OptionError(f"users = {shown(users)}: must be 1 or None")
    limits = (math.inf if limit is None else limit for limit in (ttft, tpot))
    load = ServingLoad(prompt, generate, *limits)
    check_rate("network", network)
    costs = ServingCosts(decoder_to_train(config), load, dtype, network, options)
    kinds = kinds_of(pool, node, dtype)
    rate = _wanted(requests_per_second, generate, users, prices)
    apart = servers if generate > 1 else "same"
    with Interruption(stop) as interruption:
        search = ServingSearch(costs, top, clock, interruption, users == 1)
        least = None if rate is None else fewest(search, kinds, apart, rate, prices)
        found = served(search, kinds, apart, top) if least is None else least.found
    if not found.rows:
        _refuse(search, kinds, proven=found.bound == 0)
    return ServingPlan(
        tuple(found.rows),
        max(found.bound, found.rows[0].tokens_per_second),
        search.tried,
        search.solved,
        search.whole,
        kinds if least is None else least.pool,
        load,
        users,
        time.perf_counter() - started,
        found.best,
        rate,
        None if least is None else least.fewer,
    )


def _wanted(
    requests: float | None, generate: int, users: int | None, prices: Mapping[str, float] | None
) -> float | None:
    """Return the tokens per second that are asked for; None for the most.

    Raises
    ------
    OptionError
        If the rate is not in its range, or something else is given with it or without it.
    """
    if requests is None:
        if prices is not None:
            raise OptionError(f"prices = {shown(prices)}: are for requests_per_second")
        return None
    if not (is_amount(requests) and requests):
        raise OptionError(f"requests_per_second = {shown(requests)}: must be a number above 0")
    if users is not None:
        raise OptionError(f"users = {users}: is not for requests_per_second")
    return requests * generate


def _refuse(search: ServingSearch, kinds: tuple[PooledKind, ...], proven: bool) -> None:
    if not search.whole:
        raise NoPlanFound(f"no layout was found among the first {search.tried} that were looked at")
    if not proven:
        raise NoPlanFound(f"none of {search.tried} layouts was found to be within the limits; others may be")
    have = ", ".join(f"{kind.count} {kind.name}" for kind in kinds)
    raise InfeasibleError(
        f"none of {search.tried} layouts on {have} fits the memory within the limits of time"
    )
