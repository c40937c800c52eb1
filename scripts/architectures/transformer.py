"""Blocks of transformers (Vaswani et al., 2017), operator by operator."""

from dataclasses import dataclass

from architectures.builder import GraphBuilder
from architectures.cost_model import MATMUL, VIEW
from architectures.primitives import dense, dropout, linear, normalise, pointwise, product


@dataclass(frozen=True)
class Shape:
    """Dimensions of a transformer and of one batch.

    Attributes
    ----------
    layers, hidden, heads, feed_forward, vocabulary : int
        Published dimensions.
    batch, sequence : int
        Sequences per batch and tokens per sequence.
    key_heads : int or None
        Heads of the keys and values (grouped-query attention); all by default.
    bias : bool
        Whether products have a bias.
    """

    layers: int
    hidden: int
    heads: int
    feed_forward: int
    vocabulary: int
    batch: int
    sequence: int
    key_heads: int | None = None
    bias: bool = True

    @property
    def tokens(self) -> int:
        """Tokens of one batch."""
        return self.batch * self.sequence

    @property
    def elements(self) -> int:
        """Elements of the hidden states of one batch."""
        return self.tokens * self.hidden


def layer_norm(graph: GraphBuilder, shape: Shape, value: int, name: str = "layer_norm") -> int:
    """Add a layer normalisation over the hidden states."""
    return normalise(graph, name, value, shape.elements, 2 * shape.hidden)


def attention(graph: GraphBuilder, shape: Shape, value: int, mask: int | None, training: bool) -> int:
    """Add multi-head self-attention up to its output projection; return that.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to extend, in the layer to extend.
    shape : Shape
        Dimensions.
    value : int
        Hidden states.
    mask : int or None
        Operator that yields the additive mask, where it is computed from the input.
    training : bool
        Whether there is dropout.
    """
    key_width = shape.hidden // shape.heads * (shape.key_heads or shape.heads)
    query = _heads(graph, shape, "query", value, shape.hidden)
    key = _heads(graph, shape, "key", value, key_width)
    values = _heads(graph, shape, "value", value, key_width)
    weights = _attention_weights(graph, shape, (query, key), mask, training)
    flops = 2 * shape.elements * shape.sequence
    context = graph.add("context", MATMUL, (weights, values), shape.elements, flops=flops)
    merged = linear(graph, "merge_heads", (context,), shape.elements)
    return dense(graph, "out", merged, shape.tokens, shape.hidden, shape.hidden, shape.bias)


def _heads(graph: GraphBuilder, shape: Shape, name: str, value: int, width: int) -> int:
    projected = dense(graph, name, value, shape.tokens, shape.hidden, width, shape.bias)
    elements = shape.tokens * width
    viewed = graph.add(f"{name}_reshape", VIEW, (projected,), elements)
    return linear(graph, f"{name}_transpose", (viewed,), elements)


def _attention_weights(
    graph: GraphBuilder,
    shape: Shape,
    operands: tuple[int, int],
    mask: int | None,
    training: bool,
) -> int:
    elements = shape.tokens * shape.heads * shape.sequence
    flops = 2 * shape.elements * shape.sequence
    scores = graph.add("scores", MATMUL, operands, elements, flops=flops)
    inputs = (scores,) if mask is None else (scores, mask)
    masked = linear(graph, "scale_mask", inputs, elements)
    weights = pointwise(graph, "softmax", (masked,), elements)
    return dropout(graph, weights, elements, training, "softmax_dropout")


def feed_forward(graph: GraphBuilder, shape: Shape, value: int, layers: tuple[str, str]) -> int:
    """Add the two products of a feed-forward part as two layers; return the second."""
    tokens, width = shape.tokens, shape.feed_forward
    graph.layer(layers[0])
    inner = dense(graph, "", value, tokens, shape.hidden, width, shape.bias)
    active = product(graph, "gelu", (inner,), tokens * width)
    graph.layer(layers[1])
    return dense(graph, "", active, tokens, width, shape.hidden, shape.bias)


def residual(
    graph: GraphBuilder, shape: Shape, value: int, skip: int, training: bool, name: str = "add"
) -> int:
    """Add dropout and the residual sum."""
    dropped = dropout(graph, value, shape.elements, training)
    return linear(graph, name, (dropped, skip), shape.elements)
