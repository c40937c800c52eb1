"""Uniform layouts of a decoder: what one of the devices holds that divide every layer among them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from partitioner.base.argument_types import check_counts, check_word, is_count
from partitioner.base.errors import OptionError, shown
from partitioner.estimation.device_operations import ROUTINGS
from partitioner.formats.llm.decoder import Attention, Decoder, DecoderBlock, Dense, Experts
from partitioner.workload.extras import MOST_ZERO
from partitioner.workload.training_states import RECOMPUTE

KERNELS = ("fused", "unfused")
SWITCHES = (
    *("sequence_parallel", "fused_gate", "fused_gradients", "copied_gradients", "fused_casts"),
    "overlapped",
)


@dataclass(frozen=True)
class Parallelism:
    """How devices divide every layer among them, and what they compute again in the backward pass.

    The degrees multiply: `tensor` * `context_parallel` devices run a microbatch together.

    Parameters
    ----------
    tensor
        Devices that divide the heads of attention, the inner width of networks, and the vocabulary.
    sequence_parallel
        Whether these devices also divide the tokens of what lies between the products (norms, dropout), so
        that none of it is held twice (Korthikanti et al. 2022, Section 4.2.2).
    context_parallel
        Devices that divide the tokens of every sequence in all layers, and gather keys and values.
    expert_parallel
        Devices that divide the experts of a mixture; each has a microbatch of its own, and they exchange
        tokens.
    data_parallel
        Replicas among which `zero` divides states.
    zero
        What replicas divide among them: 0 nothing, 1 the optimizer's state, 2 gradients too, 3 parameters
        too, as FSDP does (Rajbhandari et al. 2020).
    recompute
        What a layer computes again in the backward pass: ``"none"``, the scores of attention
        (``"selective"``), norms and activation functions, too (``"elementwise"``), these and every second
        product (``"alternate"``, torchtitan's selective recomputation by operator), or everything but its
        input (``"full"``).
    attention
        Whether the kernel of attention keeps the square of scores (``"unfused"``) or not (``"fused"``).
    fused_gradients
        Whether products add gradients to those of the batch's earlier samples, so that no other kernel does.
    copied_gradients
        Whether gradients are first copied to the type in which they are added, as DeepSpeed's optimizer for
        bfloat16 does.
    fused_casts
        Whether norms and activation functions give factors of one byte (delayed scaling), so that other
        kernels cast only what attention gives and the gradients that no activation function gives.
    overlapped
        Whether devices exchange tensors while they compute products, so that the longer of both counts, and
        send a token once to each server that has experts for it.
    routing
        How tokens choose their experts: ``"balanced"``, evenly; ``"power_law"``, some experts more than
        others, and the device with the most rows counts; None: evenly in training, where an auxiliary loss or
        biases of the router balance them, else by a power law.
    fused_gate
        Whether one kernel applies the activation function and multiplies by the gate, so that what the
        function gives is not kept.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.

    Examples
    --------
    >>> Parallelism(tensor=8, context_parallel=2).devices
    16
    """

    tensor: int = 1
    sequence_parallel: bool = False
    context_parallel: int = 1
    expert_parallel: int = 1
    data_parallel: int = 1
    zero: int = 0
    recompute: str = "none"
    attention: str = "fused"
    fused_gate: bool = False
    fused_gradients: bool = False
    copied_gradients: bool = False
    fused_casts: bool = False
    overlapped: bool = False
    routing: str | None = None

    def __post_init__(self) -> None:
        degrees = ("tensor", "context_parallel", "expert_parallel", "data_parallel")
        check_counts(**{name: getattr(self, name) for name in degrees})
        if not is_count(self.zero, 0, MOST_ZERO):
            raise OptionError(f"zero = {shown(self.zero)}: must be an integer from 0 to {MOST_ZERO}")
        for name in SWITCHES:
            if not isinstance(value := getattr(self, name), bool):
                raise OptionError(f"{name} = {shown(value)}: must be True or False")
        check_word("recompute", self.recompute, RECOMPUTE)
        check_word("attention", self.attention, KERNELS)
        if self.routing is not None:
            check_word("routing", self.routing, ROUTINGS)

    @property
    def devices(self) -> int:
        """How many devices run a microbatch together."""
        return self.tensor * self.context_parallel

    @property
    def scattered(self) -> int:
        """Among how many devices the tokens between products are divided, beyond `context_parallel`."""
        return self.tensor if self.sequence_parallel else 1

    def routed(self, training: bool) -> str:
        """Return how tokens choose their experts."""
        return self.routing or ("balanced" if training else "power_law")

    def share(self, zero: int) -> int:
        """Among how many replicas a state is divided that `zero` divides from this number on."""
        return self.data_parallel if self.zero >= zero else 1

    def held(self, zero: int, routed: float = 0.0) -> float:
        """Return the part that a replica holds of a state that `zero` divides from this number on.

        The share `routed` of it belongs to experts that devices divide, so that fewer replicas hold them.

        Examples
        --------
        >>> Parallelism(data_parallel=4, expert_parallel=2, zero=1).held(1, routed=1.0)
        0.5
        """
        shares = self.share(zero)
        return (1 - routed) / shares + routed / max(1.0, shares / self.expert_parallel)


def one_share(decoder: Decoder, parallelism: Parallelism) -> Decoder:
    """Return the decoder as one of the devices sees it: with its heads, its width, vocabulary and experts.

    Keys and values of fewer heads than devices are held by several of them. Widths that the degree does not
    divide are rounded up.

    Raises
    ------
    OptionError
        If a degree does not divide the heads or the experts.
    """
    t = parallelism.tensor
    if t == parallelism.expert_parallel == 1:
        return decoder
    blocks = {id(block): _block_share(block, parallelism) for block in decoder.blocks + decoder.predictors}
    return replace(
        decoder,
        vocabulary=_part(decoder.vocabulary, t),
        blocks=tuple(blocks[id(block)] for block in decoder.blocks),
        predictors=tuple(blocks[id(block)] for block in decoder.predictors),
    )


def _block_share(block: DecoderBlock, parallelism: Parallelism) -> DecoderBlock:
    t, network = parallelism.tensor, block.network
    if isinstance(network, Dense):
        inner: Dense | Experts = replace(network, width=_part(network.width, t))
    else:
        e = parallelism.expert_parallel
        _must_divide("expert_parallel", e, network.count, "experts of a layer")
        width, shared = _part(network.width, t), _part(network.shared, t)
        inner = replace(network, width=width, shared=shared, over=e)
    return replace(block, attention=_attention_share(block.attention, t), network=inner)


def _attention_share(attention: Attention, t: int) -> Attention:
    _must_divide("tensor", t, attention.heads, "attention heads of a layer")
    kv_heads = _part(attention.kv_heads, t) if t < attention.kv_heads else 1
    return replace(attention, heads=attention.heads // t, kv_heads=kv_heads)


def _part(whole: int, t: int) -> int:
    return -(-whole // t)


def _must_divide(option: str, degree: int, count: int, what: str) -> None:
    if count % degree:
        raise OptionError(f"{option} = {degree}: must divide the {count} {what}")
