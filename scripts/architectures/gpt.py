"""Decoders with pre-normalisation: GPT-2 and GPT-3 (Radford, 2019; Brown et al., 2020)."""

from architectures.builder import GraphBuilder
from architectures.cost_model import DISCRETE
from architectures.primitives import dense, embedding, linear, loss, source
from architectures.transformer import Shape, attention, feed_forward, layer_norm, residual


def gpt(graph: GraphBuilder, training: bool, shape: Shape) -> None:
    """Add a GPT decoder; the output projection is not tied to the embedding.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to end in the loss (else in the most likely tokens) and to have dropout.
    shape : Shape
        Dimensions.
    """
    hidden = _embeddings(graph, shape)
    for block in range(shape.layers):
        hidden = gpt_block(graph, shape, f"block{block:02d}", hidden, training)
    graph.layer("final_norm")
    hidden = layer_norm(graph, shape, hidden)
    language_head(graph, shape, hidden, training)


def gpt_block(graph: GraphBuilder, shape: Shape, name: str, hidden: int, training: bool) -> int:
    """Add one decoder block and return its output."""
    graph.layer(f"{name}/attention")
    normed = layer_norm(graph, shape, hidden)
    attended = attention(graph, shape, normed, None, training)
    middle = residual(graph, shape, attended, hidden, training)
    graph.layer(f"{name}/norm")
    normed = layer_norm(graph, shape, middle)
    inner = feed_forward(graph, shape, normed, (f"{name}/expand", f"{name}/contract"))
    return residual(graph, shape, inner, middle, training)


def language_head(graph: GraphBuilder, shape: Shape, hidden: int, training: bool) -> None:
    """Add the projection to the vocabulary, and the loss or the most likely tokens."""
    graph.layer("head")
    elements = shape.tokens * shape.vocabulary
    logits = dense(graph, "", hidden, shape.tokens, shape.hidden, shape.vocabulary, bias=False)
    if training:
        loss(graph, (logits,), elements)
    else:
        graph.add("argmax", DISCRETE, (logits,), shape.tokens, flops=elements)


def _embeddings(graph: GraphBuilder, shape: Shape) -> int:
    ids = source(graph, "token_ids", shape.tokens)
    graph.layer("token_embedding")
    words = embedding(graph, ids, shape.vocabulary, shape.hidden, shape.tokens)
    places = source(graph, "position_ids", shape.sequence)
    graph.layer("position_embedding")
    rows = embedding(graph, places, shape.sequence, shape.hidden, shape.sequence)
    graph.layer("embedding_sum")
    return linear(graph, "add", (words, rows), shape.elements)
