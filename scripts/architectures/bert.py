"""BERT encoders (Devlin et al., 2018)."""

from architectures.builder import GraphBuilder
from architectures.cost_model import DISCRETE, LINEAR
from architectures.primitives import dense, embedding, linear, loss, pointwise, product, source
from architectures.transformer import Shape, attention, feed_forward, layer_norm, residual

POSITIONS = 512
SEGMENTS = 2
PREDICTED_SHARE = 0.15


def bert(graph: GraphBuilder, training: bool, shape: Shape) -> None:
    """Add a BERT encoder: with both pre-training heads, or a classifier for inference.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to add dropout and the pre-training heads.
    shape : Shape
        Dimensions.
    """
    mask = _mask(graph, shape)
    hidden = _embeddings(graph, shape)
    for block in range(shape.layers):
        hidden = _block(graph, shape, f"block{block:02d}", hidden, mask, training)
    if training:
        _pretraining_heads(graph, shape, hidden)
    else:
        _classifier(graph, shape, hidden)


def _mask(graph: GraphBuilder, shape: Shape) -> int:
    ids = source(graph, "attention_mask", shape.tokens)
    cast = graph.add("cast", DISCRETE, (ids,), shape.tokens)
    return graph.add("invert", DISCRETE, (cast,), shape.tokens)


def _embeddings(graph: GraphBuilder, shape: Shape) -> int:
    tables = {"word": shape.vocabulary, "segment": SEGMENTS, "position": POSITIONS}
    found = []
    for name, rows in tables.items():
        ids = source(graph, f"{name}_ids", shape.tokens)
        graph.layer(f"{name}_embedding")
        found.append(embedding(graph, ids, rows, shape.hidden, shape.tokens))
    graph.layer("embedding_sum")
    total = linear(graph, "add_segment", found[:2], shape.elements)
    total = linear(graph, "add_position", (total, found[2]), shape.elements)
    return layer_norm(graph, shape, total)


def _block(graph: GraphBuilder, shape: Shape, name: str, hidden: int, mask: int, training: bool) -> int:
    graph.layer(f"{name}/attention")
    attended = attention(graph, shape, hidden, mask, training)
    summed = residual(graph, shape, attended, hidden, training)
    middle = layer_norm(graph, shape, summed)
    inner = feed_forward(graph, shape, middle, (f"{name}/intermediate", f"{name}/output"))
    summed = residual(graph, shape, inner, middle, training)
    return layer_norm(graph, shape, summed)


def _pooler(graph: GraphBuilder, shape: Shape, hidden: int, classes: int) -> int:
    graph.layer("pooler")
    elements = shape.batch * shape.hidden
    first = graph.add("first_token", LINEAR, (hidden,), elements, traffic=2 * elements)
    pooled = dense(graph, "", first, shape.batch, shape.hidden, shape.hidden)
    active = pointwise(graph, "tanh", (pooled,), elements)
    graph.layer("classifier")
    return dense(graph, "", active, shape.batch, shape.hidden, classes)


def _classifier(graph: GraphBuilder, shape: Shape, hidden: int) -> None:
    logits = _pooler(graph, shape, hidden, SEGMENTS)
    pointwise(graph, "softmax", (logits,), shape.batch * SEGMENTS)


def _pretraining_heads(graph: GraphBuilder, shape: Shape, hidden: int) -> None:
    rows = int(PREDICTED_SHARE * shape.tokens)
    graph.layer("masked_words/transform")
    elements = rows * shape.hidden
    picked = graph.add("pick", LINEAR, (hidden,), elements, traffic=2 * elements)
    changed = dense(graph, "", picked, rows, shape.hidden, shape.hidden)
    active = product(graph, "gelu", (changed,), elements)
    graph.layer("masked_words/logits")
    words = dense(graph, "", active, rows, shape.hidden, shape.vocabulary)
    relation = _pooler(graph, shape, hidden, 2)
    loss(graph, (words, relation), rows * shape.vocabulary)
