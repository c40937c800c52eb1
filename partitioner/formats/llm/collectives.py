"""What devices that divide a layer exchange while it runs, and how long they take for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from partitioner.base.units import MS_PER_SECOND
from partitioner.estimation.device_operations import Collective
from partitioner.estimation.device_time import operation_time
from partitioner.estimation.named_devices import NamedDevice
from partitioner.formats.llm.decoder import Decoder, DecoderBlock, Experts
from partitioner.formats.llm.memory import NumberBytes
from partitioner.formats.llm.operators import TokenRun
from partitioner.formats.llm.parallelism import Parallelism

SERVER = 8  # devices of a server, which are linked directly, if nothing else is said


class Exchanges(NamedTuple):
    """The collectives of a layer in its forward pass and in its backward pass."""

    forward: tuple[Collective, ...] = ()
    backward: tuple[Collective, ...] = ()


NOTHING = Exchanges()


@dataclass(frozen=True)
class Links:
    """What devices exchange over.

    Their own links within a server of `server` devices, `bandwidth` bytes per second between servers, and the
    part of them that is reached. With `captured` they sum up by the kernels of servers, in captured graphs.
    """

    device: NamedDevice
    bandwidth: float
    efficiency: float | None = None
    server: int = SERVER
    captured: bool = False

    def time(self, collectives: tuple[Collective, ...], apart: int = 1) -> float:
        """Return the milliseconds of collectives one after the other.

        Each device of a group is `apart` ranks from the next one; a group that spans more ranks than a server
        has exchanges over the network.
        """
        return sum(self._time(one, apart) for one in collectives)

    def _time(self, one: Collective, apart: int) -> float:
        if one.gpus * apart > self.server:
            return float(one.sent / self.bandwidth * MS_PER_SECOND)
        run = replace(one, captured=self.captured)
        return float(operation_time(self.device, run, efficiency=self.efficiency))


def exchanges_of_block(
    block: DecoderBlock,
    hidden: int,
    run: TokenRun,
    parallelism: Parallelism,
    numbers: NumberBytes,
    server: int = SERVER,
) -> Exchanges:
    """Return what the devices exchange for a block.

    Devices of a tensor-parallel group sum up what attention and network give, and in the backward pass the
    gradients of their inputs: each an all-reduce of all hidden states, or, where they divide the tokens
    between products, a reduce-scatter and an all-gather (Megatron-LM; Korthikanti et al. 2022, Section
    4.2.2). Blocks with one norm sum up both at once. Devices that divide sequences gather keys and values,
    and in the backward pass also sum up their gradients. Devices that divide experts send each token to its
    experts and back; kernels that overlap this with products send one to each of its servers only, which
    pass it on (DeepSeek-AI 2024, Section 3.2.2). A block that is computed again exchanges again.
    """
    states = run.tokens * hidden * numbers.computed
    forward = _summed(states, parallelism) * min(block.norms, 2)
    backward = forward
    if parallelism.context_parallel > 1:
        attention = block.attention
        cached = attention.kv_heads * (attention.key + attention.value) * run.tokens * run.spread
        gathered = Collective("all_gather", run.spread, cached * numbers.computed)
        forward += (gathered,)
        backward += (gathered, Collective("reduce_scatter", run.spread, cached * numbers.computed))
    network, e = block.network, parallelism.expert_parallel
    if isinstance(network, Experts) and e > 1:
        copies = network.top
        if parallelism.overlapped and e * parallelism.tensor > server:
            copies = min(copies, -(-e * parallelism.tensor // server), network.reach or copies)
        routed = (Collective("all_to_all", e, states * copies),) * 2
        forward, backward = forward + routed, backward + routed
    return Exchanges(forward, backward + forward * (parallelism.recompute == "full"))


def exchanges_of_ends(
    decoder: Decoder, run: TokenRun, parallelism: Parallelism, numbers: NumberBytes
) -> tuple[Exchanges, Exchanges]:
    """Return what the devices exchange for the embedding and for the head, which divide the vocabulary.

    The embedding sums up what each of them finds in its part; the head sums up the gradients of its input.
    """
    states = run.tokens * (decoder.embedded or decoder.hidden) * numbers.computed
    summed = _summed(states, parallelism)
    return Exchanges(forward=summed), Exchanges(backward=summed)


def gathered_states(
    stored: float, gradients: float, parallelism: Parallelism, routed: float = 0.0
) -> Exchanges:
    """Return what replicas exchange during the passes for parameters that they divide among them.

    Both passes gather the parameters, of `stored` bytes, and the backward pass sums up the gradients (FSDP).
    The share `routed` of both belongs to experts that devices divide, so that fewer replicas hold it.
    """
    shares = parallelism.share(zero=3)
    held = ((1 - routed, shares), (routed, shares // parallelism.expert_parallel))
    divided = [(part, count) for part, count in held if part > 0 and count > 1]
    gathered = tuple(Collective("all_gather", count, part * stored) for part, count in divided)
    summed = tuple(Collective("reduce_scatter", count, part * gradients) for part, count in divided)
    return Exchanges(gathered, gathered + summed)


def _summed(states: float, parallelism: Parallelism) -> tuple[Collective, ...]:
    t = parallelism.tensor
    if t == 1:
        return ()
    if parallelism.sequence_parallel:
        return Collective("reduce_scatter", t, states), Collective("all_gather", t, states)
    return (Collective("all_reduce", t, states),)
