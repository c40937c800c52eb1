"""GNMT (Wu et al., 2016): stacked LSTM encoder and decoder with additive attention."""

from dataclasses import dataclass

from architectures.builder import GraphBuilder
from architectures.cost_model import DISCRETE, MATMUL, RECURRENT
from architectures.primitives import (
    dense,
    dropout,
    embedding,
    linear,
    loss,
    pointwise,
    source,
)

FIRST_RESIDUAL = 2
GATES = 4


@dataclass(frozen=True)
class Translation:
    """Dimensions of the translation model and of one batch."""

    layers: int
    hidden: int
    vocabulary: int
    batch: int
    steps: int

    @property
    def tokens(self) -> int:
        """Tokens of one batch, on either side."""
        return self.batch * self.steps

    @property
    def elements(self) -> int:
        """Elements of the hidden states of one batch, on either side."""
        return self.tokens * self.hidden


def gnmt(graph: GraphBuilder, training: bool, shape: Translation) -> None:
    """Add the translation model, whose decoder reads a whole target sentence.

    The first decoder layer makes the query of the attention, and the context that it
    yields enters every later decoder layer. Both sides share one embedding table.

    Parameters
    ----------
    graph : GraphBuilder
        Graph to fill.
    training : bool
        Whether to have dropout and to end in the loss.
    shape : Translation
        Dimensions.
    """
    words = source(graph, "source_tokens", shape.tokens)
    graph.layer("encoder/embedding")
    table = _embed(graph, shape, words)
    encoded = _encoder(graph, shape, table, training)
    words = source(graph, "target_tokens", shape.tokens)
    graph.layer("decoder/embedding")
    state = _embed(graph, shape, words, tied_to=table)
    state = _lstm(graph, shape, "decoder/lstm1", (state,), (shape.hidden,), training)
    context = _attention(graph, shape, encoded, state)
    widths = (shape.hidden, shape.hidden)
    for layer in range(1, shape.layers):
        name = f"decoder/lstm{layer + 1}"
        deeper = _lstm(graph, shape, name, (state, context), widths, training)
        state = _skip(graph, shape, layer, deeper, state)
    _classifier(graph, shape, state, training)


def _embed(graph: GraphBuilder, shape: Translation, words: int, tied_to: int | None = None) -> int:
    return embedding(graph, words, shape.vocabulary, shape.hidden, shape.tokens, tied_to)


def _encoder(graph: GraphBuilder, shape: Translation, state: int, training: bool) -> int:
    ways = [
        _lstm(graph, shape, f"encoder/lstm1_{way}", (state,), (shape.hidden,), training)
        for way in ("forward", "backward")
    ]
    graph.layer("encoder/lstm1_concat")
    state, width = linear(graph, "concat", ways, 2 * shape.elements), 2 * shape.hidden
    for layer in range(1, shape.layers):
        name = f"encoder/lstm{layer + 1}"
        deeper = _lstm(graph, shape, name, (state,), (width,), training)
        state, width = _skip(graph, shape, layer, deeper, state), shape.hidden
    return state


def _skip(graph: GraphBuilder, shape: Translation, layer: int, deeper: int, state: int) -> int:
    """Add the residual connection, which the first layers lack."""
    if layer < FIRST_RESIDUAL:
        return deeper
    return linear(graph, "residual", (deeper, state), shape.elements)


def _lstm(
    graph: GraphBuilder,
    shape: Translation,
    name: str,
    inputs: tuple[int, ...],
    widths: tuple[int, ...],
    training: bool,
) -> int:
    """Add a layer: one product per input over all steps, then the recurrence step by step."""
    graph.layer(name)
    gates = GATES * shape.hidden
    products = []
    for index, (value, width) in enumerate(zip(inputs, widths, strict=True)):
        label = ("input", "context")[index]
        value = dropout(graph, value, shape.tokens * width, training) if index == 0 else value
        products.append(dense(graph, label, value, shape.tokens, width, gates))
    if len(products) > 1:
        products = [linear(graph, "sum", products, shape.tokens * gates)]
    weights = gates * shape.hidden
    return graph.add(
        "recurrence",
        RECURRENT,
        products,
        shape.elements,
        flops=2 * shape.tokens * weights,
        parameters=weights,
        traffic=shape.steps * weights + 6 * shape.elements,
        kernels=2 * shape.steps,
    )


def _attention(graph: GraphBuilder, shape: Translation, encoded: int, state: int) -> int:
    tokens, hidden, pairs = shape.tokens, shape.hidden, shape.tokens * shape.steps
    graph.layer("attention/keys")
    keys = dense(graph, "keys", encoded, tokens, hidden, hidden)
    graph.layer("attention/query")
    query = dense(graph, "query", state, tokens, hidden, hidden)
    graph.layer("attention")
    mixed = pointwise(graph, "add_tanh", (keys, query), pairs * hidden)
    scores = dense(graph, "score", mixed, pairs, hidden, 1, bias=False)
    weights = pointwise(graph, "softmax", (scores,), pairs)
    flops = 2 * pairs * hidden
    return graph.add("context", MATMUL, (weights, encoded), shape.elements, flops=flops)


def _classifier(graph: GraphBuilder, shape: Translation, state: int, training: bool) -> None:
    graph.layer("classifier")
    logits = dense(graph, "", state, shape.tokens, shape.hidden, shape.vocabulary)
    elements = shape.tokens * shape.vocabulary
    if training:
        loss(graph, (logits,), elements)
        return
    graph.layer("search")
    scores = pointwise(graph, "log_softmax", (logits,), elements)
    graph.add("beam_search", DISCRETE, (scores,), shape.tokens, flops=4 * elements)
