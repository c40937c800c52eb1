"""The operators of a decoder: parameters, arithmetic and memory traffic, in numbers instead of bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    """

    parameters: float = 0.0
    read: float = 0.0
    flops: float = 0.0
    moved: float = 0.0
    kept: float = 0.0

    @property
    def is_product(self) -> bool:
        """Whether it is a product with parameters."""
        return self.parameters > 0 and self.flops > 0


def product(tokens: float, inner: int, outer: int, bias: bool = False, kept: float | None = None) -> Operator:
    """Return a product with a matrix of weights; it keeps its input, of `kept` tokens if not of all."""
    weights = inner * outer + bias * outer
    held = (tokens if kept is None else kept) * inner
    return Operator(weights, weights, 2 * tokens * inner * outer, tokens * (inner + outer), held)


def norm(tokens: float, width: int, bias: bool = False) -> Operator:
    """Return a norm; it keeps its input."""
    weights = width * (1 + bias)
    return Operator(weights, weights, 0.0, 2 * tokens * width, tokens * width)


def lookup(tokens: float, rows: int, width: int) -> Operator:
    """Return an embedding, of which a pass reads only the rows of its tokens."""
    return Operator(rows * width, 0.0, 0.0, 2 * tokens * width, 0.0)


def block_operators(block: DecoderBlock, hidden: int, run: TokenRun) -> Operators:
    """Return the operators of a block."""
    norms = [norm(run.between, hidden, block.norm_bias)] * block.norms
    network = block.network
    inner = (
        dense_operators(network, hidden, run.tokens, run.between)
        if isinstance(network, Dense)
        else expert_operators(network, hidden, run.tokens, run.between)
    )
    return [*norms, *attention_operators(block.attention, hidden, run), *inner]


def attention_operators(attention: Attention, hidden: int, run: TokenRun) -> Operators:
    """Return the operators of an attention, whose scores are not kept (they are computed again)."""
    queries, values = attention.heads * attention.key, attention.heads * attention.value
    keys = attention.kv_heads * attention.key
    stored = keys + attention.kv_heads * attention.value
    scores = Operator(
        flops=2 * run.pairs(attention.window) * (queries + values),
        moved=run.tokens * (queries + stored + values) + run.batch * run.context * attention.cache,
        kept=run.tokens * (queries + stored),
    )
    passing = run.tokens * (queries + keys)
    norms = [Operator(attention.norms, attention.norms, moved=passing, kept=passing)]
    output = product(run.tokens, values, hidden, attention.output_bias)
    inputs = _projections(attention, hidden, run.tokens, run.between)
    return [*inputs, *norms * bool(attention.norms), scores, output]


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
    activation = Operator(moved=tokens * (inner + network.width), kept=kept)
    up = product(tokens, hidden, inner, network.bias, between)
    return [up, activation, product(tokens, network.width, hidden, network.bias)]


def expert_operators(experts: Experts, hidden: int, tokens: float, between: float | None = None) -> Operators:
    """Return the operators of a mixture of experts under uniform routing.

    A pass reads the parameters of as many experts as some token is expected to run. The sum over experts, and
    the gate of shared ones, keep what the experts return; shared experts and the router keep one input. If
    several devices divide the experts, each runs the tokens of all that go to its own.
    """
    router = product(tokens, hidden, experts.count, experts.router_bias, between)
    routed = dense_operators(Dense(experts.width), hidden, tokens * experts.top)
    own = experts.count / experts.over
    met = own * (1 - (1 - experts.top / experts.count) ** (tokens * experts.over))
    found = [Operator(one.parameters * own, one.read * met, one.flops, one.moved, one.kept) for one in routed]
    if experts.shared:
        first, *others = dense_operators(Dense(experts.shared), hidden, tokens)
        found += [replace(first, kept=0.0), *others]
    gate = [product(tokens, hidden, 1)] * experts.shared_gate
    return [router, *found, *gate, Operator(kept=tokens * experts.top * hidden)]
