"""The fewest GPUs of a pool, or the cheapest, that serve a load within limits, and a proof that fewer do not.

Parts of the pool are taken by their price, and the bound over all layouts on each is compared with the load.
Of a single kind the search starts at the number that the fastest groups of GPUs need: a group of t GPUs on
which all layers take W milliseconds of a request serves at most one request in W, however many stages and
copies there are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError, shown
from partitioner.base.units import MS_PER_SECOND
from partitioner.planning.pools.pool import PooledKind
from partitioner.planning.serving.costs import BOTH, DECODE, PREFILL
from partitioner.planning.serving.on_pool import Served, most_served, served
from partitioner.planning.serving.pipelines import PipelineRun, ServingLayout
from partitioner.planning.serving.search import ServingSearch
from partitioner.workload.device_validation import is_amount

SLACK = 1e-9  # of rounding


@dataclass(frozen=True)
class FewestServers:
    """The part of a pool that serves a load.

    Parameters
    ----------
    rate
        Tokens per second that are wanted.
    pool, found
        The part, and its rows.
    fewer
        Tokens per second that no smaller or cheaper part exceeds; above `rate` where that is not proven.
    price
        What the part costs, in the unit of the prices; the number of GPUs without any.
    """

    rate: float
    pool: tuple[PooledKind, ...]
    found: Served
    fewer: float
    price: float


def fewest(
    search: ServingSearch,
    kinds: Sequence[PooledKind],
    servers: str,
    rate: float,
    prices: Mapping[str, float] | None = None,
) -> FewestServers:
    """Return the smallest, or with prices the cheapest, part of the pool that has a rate.

    Raises
    ------
    OptionError
        If a kind has no price above 0.
    InfeasibleError
        If it is proven that the whole pool has not the rate.
    NoPlanFound
        If no part is found to have it, in the time or at all.
    """
    each = _checked(kinds, prices)
    first, fewer = 1, 0.0
    if len(kinds) == 1 and (least := _least(search, kinds[0], servers, rate)) > 1:
        first = kinds[0].count + 1 if least > kinds[0].count else math.ceil(least)
        fewer = rate * (first - 1) / least
    for price, pool in _parts(kinds, first, each):
        if search.ends():
            cheaper = f"no part below the price {price:g} was found to serve {rate:,.1f} tokens/s"
            raise NoPlanFound(f"{cheaper}; others may")
        most = most_served(search, pool, servers)
        if most < rate:
            fewer = max(fewer, most)
            continue
        found = served(search, pool, servers, search.top)
        if found.rows and found.rows[0].tokens_per_second >= rate * (1 - SLACK):
            return FewestServers(rate, pool, found, fewer, price)
        fewer = max(fewer, min(found.bound, most))
    have = ", ".join(f"{kind.count} {kind.name}" for kind in kinds)
    if fewer < rate:
        rates = f"at most {fewer:,.1f} of {rate:,.1f} tokens/s"
        raise InfeasibleError(f"{have} serve {rates} within the limits of time")
    raise NoPlanFound(f"no part of {have} was found to serve {rate:,.1f} tokens/s within the limits of time")


def _checked(kinds: Sequence[PooledKind], prices: Mapping[str, float] | None) -> dict[str, float]:
    if prices is None:
        return {kind.name: 1.0 for kind in kinds}
    for kind in kinds:
        if not (is_amount(price := prices.get(kind.name)) and price):
            raise OptionError(f"prices[{kind.name!r}] = {shown(price)}: must be a number above 0")
    return {kind.name: prices[kind.name] for kind in kinds}


def _parts(
    kinds: Sequence[PooledKind], first: int, prices: Mapping[str, float]
) -> Iterator[tuple[float, tuple[PooledKind, ...]]]:
    """Yield the parts of at least `first` GPUs with their prices, the cheapest first."""
    counts = [each for each in product(*(range(kind.count + 1) for kind in kinds)) if sum(each) >= first]

    def price(each: tuple[int, ...]) -> float:
        return sum(n * prices[kind.name] for n, kind in zip(each, kinds, strict=True))

    for each in sorted(counts, key=lambda one: (price(one), sum(one))):
        pairs = zip(each, kinds, strict=True)
        yield price(each), tuple(replace(kind, count=n) for n, kind in pairs if n)


def _least(search: ServingSearch, kind: PooledKind, servers: str, rate: float) -> float:
    """Return how many GPUs of a kind have a rate at least, and parts of one, by the fastest group of GPUs."""
    whole = {role: _fastest(search, kind, role) for role in (BOTH, PREFILL, DECODE)}
    same = rate / whole[BOTH] if whole[BOTH] and servers != "separate" else math.inf
    apart = math.inf
    if whole[PREFILL] and whole[DECODE] and servers != "same":
        apart = rate / whole[PREFILL] + rate / whole[DECODE]
    return min(same, apart) * (1 - SLACK)


def _fastest(search: ServingSearch, kind: PooledKind, role: str) -> float:
    """Return the tokens per second of a GPU that no group of GPUs exceeds within the limits of time."""
    load, best = search.costs.load, 0.0
    many = replace(kind, count=kind.node * search.divided)  # on which experts have every degree
    groups = {(one.tensor, one.batch, one.expert) for one in search.layouts([many], role)}
    for tensor, batch, expert in groups:
        run = PipelineRun(search.costs, ServingLayout((kind,), tensor, (1,), 1, batch, expert, role))
        each = float(run.requests.sum())
        if run.first.sum() <= load.ttft * (1 + SLACK) and not run.late(each):
            best = max(best, load.generate * MS_PER_SECOND / each / tensor[0])
    return best
