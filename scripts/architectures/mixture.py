"""Decoders with mixtures of experts (Shazeer et al., 2017; Jiang et al., 2024)."""

from dataclasses import dataclass

from architectures.builder import GraphBuilder
from architectures.cost_model import LINEAR
from architectures.gpt import language_head
from architectures.primitives import dense, embedding, linear, normalise, pointwise, product, source
from architectures.transformer import Shape, attention, feed_forward, residual


@dataclass(frozen=True)
class Experts:
    """The sparse part: how many experts, how many per token, in which blocks.

    Attributes
    ----------
    count, chosen : int
        Experts of a block, and experts that each token visits.
    every : int
        A block is sparse if it is the last of ``every`` blocks; the others are dense.
    gated : bool
        Whether an expert has a third matrix that gates the first (SwiGLU).
    """

    count: int
    chosen: int
    every: int = 1
    gated: bool = True


def mixture(graph: GraphBuilder, training: bool, shape: Shape, experts: Experts) -> None:
    """Add a decoder whose feed-forward parts are mixtures of experts.

    Tokens are assumed to be spread evenly over the experts.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to end in the loss.
    shape : Shape
        Dimensions; ``feed_forward`` is that of one expert.
    experts : Experts
        The sparse part.
    """
    ids = source(graph, "token_ids", shape.tokens)
    graph.layer("embedding")
    hidden = embedding(graph, ids, shape.vocabulary, shape.hidden, shape.tokens)
    for block in range(shape.layers):
        name = f"block{block:02d}"
        middle = _attention_part(graph, shape, name, hidden, training)
        if (block + 1) % experts.every == 0:
            hidden = _sparse_part(graph, shape, experts, name, middle)
        else:
            hidden = _dense_part(graph, shape, name, middle)
    graph.layer("final_norm")
    hidden = normalise(graph, "rms_norm", hidden, shape.elements, shape.hidden)
    language_head(graph, shape, hidden, training)


def _attention_part(graph: GraphBuilder, shape: Shape, name: str, hidden: int, training: bool) -> int:
    graph.layer(f"{name}/attention")
    normed = normalise(graph, "rms_norm", hidden, shape.elements, shape.hidden)
    attended = attention(graph, shape, normed, None, training)
    return residual(graph, shape, attended, hidden, training)


def _dense_part(graph: GraphBuilder, shape: Shape, name: str, middle: int) -> int:
    graph.layer(f"{name}/norm")
    normed = normalise(graph, "rms_norm", middle, shape.elements, shape.hidden)
    inner = feed_forward(graph, shape, normed, (f"{name}/expand", f"{name}/contract"))
    return linear(graph, "add", (inner, middle), shape.elements)


def _sparse_part(graph: GraphBuilder, shape: Shape, experts: Experts, name: str, middle: int) -> int:
    routed = experts.chosen * shape.elements
    graph.layer(f"{name}/router")
    normed = normalise(graph, "rms_norm", middle, shape.elements, shape.hidden)
    scores = dense(graph, "gate", normed, shape.tokens, shape.hidden, experts.count, bias=False)
    chances = pointwise(graph, "softmax_topk", (scores,), shape.tokens * experts.count)
    sent = linear(graph, "dispatch", (normed, chances), routed)
    answers = [
        _expert(graph, shape, experts, f"{name}/expert{index}", sent) for index in range(experts.count)
    ]
    graph.layer(f"{name}/combine")
    mixed = linear(graph, "weighted_sum", answers, shape.elements)
    return linear(graph, "add", (mixed, middle), shape.elements)


def _expert(graph: GraphBuilder, shape: Shape, experts: Experts, name: str, sent: int) -> int:
    rows = shape.tokens * experts.chosen // experts.count
    graph.layer(name)
    elements, width = rows * shape.hidden, shape.feed_forward
    own = graph.add("slice", LINEAR, (sent,), elements, traffic=2 * elements)
    inner = dense(graph, "expand", own, rows, shape.hidden, width, bias=False)
    active = product(graph, "activation", (inner,), rows * width)
    if experts.gated:
        gate = dense(graph, "gate", own, rows, shape.hidden, width, bias=False)
        active = product(graph, "multiply", (active, gate), rows * width)
    return dense(graph, "contract", active, rows, width, shape.hidden, bias=False)
