"""What a server needs besides weights and cache: the peak of the run by which it finds what it can cache.

Before it serves, a server such as vLLM runs the largest batch that it may get, and gives the cache what is
left. The peak is that of a network's inputs and results in a block, or that of sampling from the logits of
all sequences; what runtime and collectives keep on each device comes in addition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from partitioner.base.argument_types import check_counts
from partitioner.formats.llm.decoder import Decoder, DecoderBlock, Dense
from partitioner.formats.llm.memory import NumberBytes
from partitioner.workload.layer import Layer

RUNTIME = 551 * 2.0**20  # bytes that CUDA and libraries keep on a device: the systems of aiconfigurator
COLLECTIVES = (0.0, 342 * 2.0**20, 392 * 2.0**20)  # and NCCL for a device, for two, for more of them
SAMPLED = 41.0  # bytes of a logit: 2 as computed and 4 as a float; sorted value and index 12, and 12 more for
# the sort; probability 4, sum 4, masks 3
HIDDEN = 3  # hidden states of a token that a network's run holds: input, residual, result


@dataclass(frozen=True)
class ProfilingRun:
    """The largest batch of a server: tokens that pass at once, and sequences whose next token is sampled.

    Raises
    ------
    OptionError
        If one of both is not given, or is not a count.
    """

    tokens: int
    sequences: int

    def __post_init__(self) -> None:
        check_counts(profile_tokens=self.tokens, profile_sequences=self.sequences)


def runtime_bytes(devices: int) -> float:
    """Return the bytes that CUDA, and NCCL for a group of devices, keep on each of them.

    Examples
    --------
    >>> [round(runtime_bytes(devices) / 2**20) for devices in (1, 2, 8)]
    [551, 893, 943]
    """
    return RUNTIME + COLLECTIVES[min(devices, 3) - 1]


def with_profiling_run(
    layers: Sequence[Layer], decoder: Decoder, numbers: NumberBytes, run: ProfilingRun, devices: int
) -> list[Layer]:
    """Return the layers with the peak of a profiling run as their workspace, in place of activations.

    A token's network holds its input, its results before and after the activation function, and three hidden
    states; a sequence's sampler holds each logit 41 bytes long. Of the workspaces of a device only the
    largest counts under a schedule.
    """
    first = next(i for i, layer in enumerate(layers) if layer.name == f"{decoder.names.blocks}.0")
    peaks = [0.0] * first
    for block in decoder.blocks:
        peaks.append(run.tokens * numbers.computed * (HIDDEN * decoder.hidden + _network(block)))
    sampled = run.sequences * decoder.vocabulary * devices * SAMPLED
    found = []
    for i, layer in enumerate(layers):
        peak = sampled if layer.name == decoder.names.head else peaks[i] if i < len(peaks) else 0.0
        found.append(replace(layer, activations=0.0, workspace=peak + runtime_bytes(devices)))
    return found


def _network(block: DecoderBlock) -> float:
    """Return the numbers of a token that a network holds at once, in one of the devices that divide it."""
    network = block.network
    if isinstance(network, Dense):
        return network.width * (2 + network.gated)
    return network.top * network.width * 3 + network.shared * 3
