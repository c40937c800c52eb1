"""The operators of a decoder: parameters, arithmetic and memory traffic, in numbers instead of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from partitioner.estimation.device_operations import (
    AttentionScores,
    DeviceOperation,
    ExpertProducts,
    Product,
    Traffic,
)
from partitioner.formats.llm.decoder import Attention, DecoderBlock, Dense, Experts

Operators = list["Operator"]


@dataclass(frozen=True)
class TokenRun:
    """What passes a model at once: `batch` sequences of `sequence` tokens, after `context` cached ones.

    `spread` devices divide the tokens of each sequence among them. Each of these is one of `scattered`
    devices that divide its tokens between products, but not in them.
    """

    batch: int
    sequence: int
    context: int = 0
    spread: int = 1
    scattered: int = 1

    @property
    def tokens(self) -> float:
        """The number of tokens that a device processes in products."""
        return self.batch * self.sequence / self.spread

    @property
    def between(self) -> float:
        """The number of tokens that a device processes between products, and keeps as their inputs."""
        return self.tokens / self.scattered

    def pairs(self, window: int | None) -> float:
        """Return how many pairs of a token and a token that it sees there are, itself included."""
        total = self.context + self.sequence
        whole = self.sequence if window is None else max(0, min(self.sequence, window - self.context))
        growing = whole * self.context + whole * (whole + 1) // 2
        seen = growing + (self.sequence - whole) * min(window or total, total)
        return self.batch * seen / self.spread


@dataclass(frozen=True)
class Operator:
    """An operator of a forward pass.

    Parameters
    ----------
    parameters, read
        Parameters that it holds, and those that a pass reads.
    flops
        Floating-point operations; a multiplication with an addition counts as two.
    moved
        Numbers other than parameters that it reads and writes.
    kept
        Numbers that it keeps for the backward pass.
    runs
        What a device runs for it, from which its time by curves follows.
    """

    parameters: float = 0.0
    read: float = 0.0
    flops: float = 0.0
    moved: float = 0.0
    kept: float = 0.0
    runs: tuple[DeviceOperation, ...] = ()

    @property
    def is_product(self) -> bool:
        """Whether it is a product with parameters."""
        return self.parameters > 0 and self.flops > 0


def product(tokens: float, inner: int, outer: int, bias: bool = False, kept: float | None = None) -> Operator:
    """Return a product with a matrix of weights; it keeps its input, of `kept` tokens if not of all."""
    weights = inner * outer + bias * outer
    held = (tokens if kept is None else kept) * inner
    runs = (Product(tokens, outer, inner),)
    return Operator(weights, weights, 2 * tokens * inner * outer, tokens * (inner + outer), held, runs)


def elementwise(moved: float, kept: float = 0.0, gradient: float | None = None) -> Operator:
    """Return an operator that takes as long as the numbers that it reads and writes."""
    return Operator(moved=moved, kept=kept, runs=(Traffic(moved, gradient),))


def norm(tokens: float, width: int, bias: bool = False) -> Operator:
    """Return a norm; it keeps its input."""
    weights = width * (1 + bias)
    moved = 2 * tokens * width
    return Operator(weights, weights, 0.0, moved, tokens * width, (Traffic(moved),))


def lookup(tokens: float, rows: int, width: int) -> Operator:
    """Return an embedding, of which a pass reads only the rows of its tokens."""
    moved = 2 * tokens * width
    return Operator(rows * width, 0.0, 0.0, moved, 0.0, (Traffic(moved),))


def loss(tokens: float, vocabulary: int) -> Operator:
    """Return the cross-entropy of logits, which is computed in four bytes.

    It copies the logits (reading one number of two bytes and writing two) and reads the copy (two); the
    gradient reads it again and is written (three).
    """
    return elementwise(5 * tokens * vocabulary, gradient=3 * tokens * vocabulary)


def block_operators(block: DecoderBlock, hidden: int, run: TokenRun) -> Operators:
    """Return the operators of a block, of which the last two add what attention and network give."""
    norms = [norm(run.between, hidden, block.norm_bias)] * block.norms
    network = block.network
    inner = (
        dense_operators(network, hidden, run.tokens, run.between)
        if isinstance(network, Dense)
        else expert_operators(network, hidden, run.tokens, run.between)
    )
    mask = 0.5 * block.dropout  # a byte of a number of two
    added = elementwise(
        (3 + mask) * run.between * hidden, gradient=(3 + 2.5 * block.dropout) * run.between * hidden
    )
    return [*norms, *attention_operators(block.attention, hidden, run), *inner, added, added]


def alternate_products(block: DecoderBlock, hidden: int, run: TokenRun) -> tuple[list[Product], float]:
    """Return every second product with a matrix of its own, and the numbers that all others give.

    In order: queries, keys, values, the output of attention, the network (gate, up, down). torchtitan keeps
    the results of the first, the third, ... and computes the second, the fourth, ... again, in each block. Of
    a mixture of experts only the router is one of them.
    """
    attention, network, tokens = block.attention, block.network, run.tokens
    queries, keys = attention.heads * attention.key, attention.kv_heads * attention.key
    values, weighed = attention.kv_heads * attention.value, attention.heads * attention.value
    sizes = [(hidden, queries), (hidden, keys), (hidden, values), (weighed, hidden)]
    if attention.latent is not None:
        found = [run for one in _projections(attention, hidden, tokens, tokens) for run in one.runs]
        sizes = [(run.k, run.n) for run in found if isinstance(run, Product)] + sizes[3:]
    if isinstance(network, Dense):
        sizes += [(hidden, network.width)] * (1 + network.gated) + [(network.width, hidden)]
    else:
        sizes += [(hidden, network.count)]
    kept = tokens * sum(outer for _, outer in sizes[::2])
    return [Product(tokens, outer, inner) for inner, outer in sizes[1::2]], kept


def attention_operators(attention: Attention, hidden: int, run: TokenRun) -> Operators:
    """Return the operators of an attention, whose scores are not kept (they are computed again)."""
    queries, values = attention.heads * attention.key, attention.heads * attention.value
    keys = attention.kv_heads * attention.key
    stored = keys + attention.kv_heads * attention.value
    scores = Operator(
        flops=2 * run.pairs(attention.window) * (queries + values),
        moved=run.tokens * (queries + stored + values) + run.batch * run.context * attention.cache,
        kept=run.tokens * (queries + stored),
        runs=(_scores(attention, run),),
    )
    passing = run.tokens * (queries + keys)
    norms = [Operator(attention.norms, attention.norms, 0.0, passing, passing, (Traffic(2 * passing),))]
    turned = [elementwise(2 * passing, gradient=2 * passing)] * attention.rotary
    output = product(run.tokens, values, hidden, attention.output_bias)
    inputs = _projections(attention, hidden, run.tokens, run.between)
    return [*inputs, *norms * bool(attention.norms), *turned, scores, output]


def _scores(attention: Attention, run: TokenRun) -> AttentionScores:
    """Return the scores and sums of attention; a single new token multiplies latent keys and values."""
    batch, latent, window = run.batch / run.spread, attention.latent, attention.window or 0
    if latent is not None and run.sequence == 1 and run.context:
        sizes = (latent.rank + latent.rope, latent.rank)
        return AttentionScores(
            batch, 1, run.context, attention.heads, 1, *sizes, window, cached=attention.cache
        )
    heads = (attention.heads, attention.kv_heads, attention.key, attention.value)
    return AttentionScores(batch, run.sequence, run.context, *heads, window)


def _projections(attention: Attention, hidden: int, tokens: float, kept: float) -> Operators:
    """Return the operators that compute queries, keys and values; they keep their inputs of `kept` tokens."""
    queries, latent = attention.heads * attention.key, attention.latent
    if latent is None:
        outer = queries + attention.kv_heads * (attention.key + attention.value)
        return [product(tokens, hidden, outer, attention.input_bias, kept)]
    found = [product(tokens, hidden, queries, kept=kept)]
    if latent.query_rank is not None:
        down = product(tokens, hidden, latent.query_rank, attention.input_bias, kept)
        found = [down, norm(tokens, latent.query_rank), product(tokens, latent.query_rank, queries)]
    outer = attention.heads * (attention.key - latent.rope + attention.value)
    down = product(tokens, hidden, latent.rank + latent.rope, attention.input_bias, kept)
    return [*found, down, norm(tokens, latent.rank), product(tokens, latent.rank, outer)]


def dense_operators(network: Dense, hidden: int, tokens: float, between: float | None = None) -> Operators:
    """Return the operators of a feed-forward network, which keeps its input of `between` tokens (None: all).

    An activation keeps its input; where a gate is multiplied with it, both factors are kept, too.
    """
    inner = network.width * (1 + network.gated)
    kept = tokens * network.width * (1 + 2 * network.gated)
    activation = elementwise(tokens * (inner + network.width), kept)
    up = product(tokens, hidden, inner, network.bias, between)
    return [up, activation, product(tokens, network.width, hidden, network.bias)]


def expert_parameters(network: Dense | Experts, hidden: int) -> float:
    """Return the parameters of the experts that a device holds, without shared ones and the router."""
    if isinstance(network, Dense):
        return 0.0
    each = dense_operators(Dense(network.width, bias=network.bias), hidden, 0.0)
    return network.count / network.over * sum(one.parameters for one in each)


def expert_operators(experts: Experts, hidden: int, tokens: float, between: float | None = None) -> Operators:
    """Return the operators of a mixture of experts under uniform routing.

    A pass reads the parameters of as many experts as some token is expected to run. The sum over experts, and
    the gate of shared ones, keep what the experts return; shared experts and the router keep one input. If
    several devices divide the experts, each runs the tokens of all that go to its own.
    """
    router = product(tokens, hidden, experts.count, experts.router_bias, between)
    routed = dense_operators(Dense(experts.width, bias=experts.bias), hidden, tokens * experts.top)
    own = experts.count / experts.over
    met = own * (1 - (1 - experts.top / experts.count) ** (tokens * experts.over))
    runs = ExpertProducts(tokens * experts.top, own, hidden, experts.width, experts.over)
    found = [
        Operator(
            one.parameters * own, one.read * met, one.flops, one.moved, one.kept, (runs,) * (one is routed[0])
        )
        for one in routed
    ]
    if experts.shared:
        first, *others = dense_operators(Dense(experts.shared), hidden, tokens)
        found += [replace(first, kept=0.0), *others]
    gate = [product(tokens, hidden, 1)] * experts.shared_gate
    return [router, *found, *gate, Operator(kept=tokens * experts.top * hidden)]
