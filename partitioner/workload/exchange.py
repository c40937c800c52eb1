"""How replicas exchange weights: collectives in a ring, and how often a schedule needs one."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

EXCHANGES = ("ring", "paper")
FOR_EVERY_SAMPLE = ("1f1b_async",)  # schedules that update the weights after every sample
Amount = TypeVar("Amount", float, NDArray[np.float64])


def ring_all_gather(
    size: Amount, devices: Amount, bandwidth: Amount, latency: Amount | float = 0.0
) -> Amount:
    """Return the time in which each of r devices receives the parts of a tensor that the others hold.

    The ring takes r - 1 steps, in each of which a device sends a part of `size` / r:
    (r - 1) (`size` / (r `bandwidth`) + `latency`).

    Parameters
    ----------
    size, devices
        The bytes of the whole tensor, and r.
    bandwidth
        Bytes in a unit of time over the slowest link of the ring, in one direction.
    latency
        The time that a step takes in addition.

    Examples
    --------
    >>> ring_all_gather(8e9, 4, 2e9, 0.5)
    4.5
    """
    return (devices - 1) * (size / (devices * bandwidth) + latency)


def ring_reduce_scatter(
    size: Amount, devices: Amount, bandwidth: Amount, latency: Amount | float = 0.0
) -> Amount:
    """Return the time in which r devices add up a tensor, of whose sum each keeps a part of `size` / r.

    The steps are those of :func:`ring_all_gather`, and so is the formula.

    Examples
    --------
    >>> ring_reduce_scatter(8e9, 4, 2e9)
    3.0
    """
    return ring_all_gather(size, devices, bandwidth, latency)


def ring_all_reduce(
    size: Amount, devices: Amount, bandwidth: Amount, latency: Amount | float = 0.0
) -> Amount:
    """Return the time in which r devices add up a tensor, of which each gets the whole sum.

    It is a reduce-scatter and an all-gather: 2 (r - 1) (`size` / (r `bandwidth`) + `latency`).

    Examples
    --------
    >>> ring_all_reduce(8e9, 4, 2e9)
    6.0
    """
    scattered = ring_reduce_scatter(size, devices, bandwidth, latency)
    return scattered + ring_all_gather(size, devices, bandwidth, latency)


def is_once_a_batch(exchange: str, schedule: str | None, microbatches: int | None) -> bool:
    """Return whether replicas exchange weights once a batch, and not for every sample.

    They do if the number of microbatches is known, the schedule updates the weights once a batch, and the
    exchange is not the one of the paper (Appendix H.2), which takes place for every sample.

    Parameters
    ----------
    exchange
        One of `EXCHANGES`, see :class:`partitioner.Devices`.
    schedule, microbatches
        As in :func:`partitioner.solve`; None where they are not given.

    Examples
    --------
    >>> is_once_a_batch("ring", "1f1b", 8), is_once_a_batch("ring", "1f1b_async", 8)
    (True, False)
    """
    return exchange != "paper" and microbatches is not None and schedule not in FOR_EVERY_SAMPLE


def exchanges_per_sample(exchange: str, schedule: str | None, microbatches: int | None) -> float:
    """Return the mean time that exchanges take for a sample, as a factor on that of the paper's exchange.

    An all-reduce in a ring sends the weights twice, once a batch of m samples: 2 / m. The arguments are those
    of :func:`is_once_a_batch`.

    Examples
    --------
    >>> exchanges_per_sample("ring", "1f1b", 8), exchanges_per_sample("ring", "1f1b", None)
    (0.25, 1.0)
    """
    once = is_once_a_batch(exchange, schedule, microbatches)
    return 2 / microbatches if once and microbatches is not None else 1.0
