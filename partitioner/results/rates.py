"""Values of plans in a user's words: samples and tokens a second, seconds a batch, operations a second."""

from __future__ import annotations

from collections.abc import Mapping

from partitioner.base.units import MS_PER_SECOND
from partitioner.evaluation.text.figures import figure
from partitioner.workload.extras import TIME_UNITS, Extras

TERA = 1e12
GIGA = 1e9
TOKENS, FLOPS = "tokens_per_sample", "flops_per_sample"  # fields of a graph's extras
GPUS, PEAK = "gpus_per_device", "peak_flops"  # those that a device stands for, and what one of them can do
WORDS = {
    "samples_per_second": "samples/s",
    "tokens_per_second": "tokens/s",
    "batch_seconds": "s per batch",
    "tflops_per_device": "TFLOP/s per device in use",
    "tflops_per_gpu": "TFLOP/s per GPU",
    "mfu": "of the peak (MFU)",
    "gigabytes_per_device": "GB on the fullest",
}


def rates_of(
    extras: Extras, samples: int, time: float, devices: int, batch: bool = False, memory: float = 0.0
) -> dict[str, float]:
    """Return what the time of some samples says, by name; empty if the unit of times is not known.

    Parameters
    ----------
    extras
        Those of the graph: its unit of times, and of a sample the tokens and the operations if known.
    samples, time
        How many samples end, and in which time.
    devices
        How many devices are in use.
    batch
        Whether the samples are a batch.
    memory
        The most memory that a device holds, in bytes where the graph says the tokens of a sample.

    Examples
    --------
    >>> rates_of(Extras({"timeUnit": "ms", "tokens_per_sample": 2048}), 8, 4000.0, 2, batch=True)
    {'samples_per_second': 2.0, 'tokens_per_second': 4096.0, 'batch_seconds': 4.0}
    """
    if extras.time_unit not in TIME_UNITS or not 0 < time < float("inf"):
        return {}
    seconds = time * TIME_UNITS[extras.time_unit] / MS_PER_SECOND
    rate = samples / seconds
    found = {"samples_per_second": rate}
    if TOKENS in extras.top:
        found["tokens_per_second"] = rate * extras.top[TOKENS]
    found |= {"batch_seconds": seconds} if batch else {}
    if FLOPS in extras.top:
        found |= _speeds(extras, rate * extras.top[FLOPS] / devices)
    if TOKENS in extras.top and memory:
        found["gigabytes_per_device"] = memory / GIGA
    return found


def _speeds(extras: Extras, speed: float) -> dict[str, float]:
    """Return the operations a second of a device, of a GPU, and as a part of the peak, where known."""
    gpus = extras.top.get(GPUS, 1)
    found = {"tflops_per_device": speed / TERA}
    found |= {"tflops_per_gpu": speed / gpus / TERA} if gpus > 1 else {}
    return found | ({"mfu": speed / gpus / extras.top[PEAK]} if PEAK in extras.top else {})


def rates_in_words(rates: Mapping[str, float]) -> str:
    """Return the rates as a line.

    Examples
    --------
    >>> rates_in_words({"samples_per_second": 2.0, "tokens_per_second": 4096.0})
    '2 samples/s, 4096 tokens/s'
    """
    known = {
        name: f"{rates[name]:.1%}" if name == "mfu" else figure(rates[name])
        for name in WORDS
        if name in rates
    }
    return ", ".join(f"{value} {WORDS[name]}" for name, value in known.items())


def longest_time(extras: Extras, tokens_per_second: float) -> float:
    """Return the time of a sample at a rate of tokens, in the unit of the graph's times.

    Examples
    --------
    >>> longest_time(Extras({"timeUnit": "ms", "tokens_per_sample": 2048}), 4096.0)
    500.0
    """
    return float(extras.top[TOKENS] / tokens_per_second * MS_PER_SECOND / TIME_UNITS[extras.time_unit])
