"""The fewest GPUs on which a layout has the tokens per second that are wanted."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from partitioner.base.clock import Clock
from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.interruption import Interruption
from partitioner.base.units import MS_PER_SECOND
from partitioner.planning.layouts.costs import ModelCosts
from partitioner.planning.layouts.question import TRAINED, LayoutQuestion
from partitioner.planning.layouts.space import divisors


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
