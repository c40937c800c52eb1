"""Operators that several architectures share."""

from collections.abc import Iterable

from architectures.builder import GraphBuilder
from architectures.cost_model import (
    ACTIVATION,
    INPUT,
    LINEAR,
    LOOKUP,
    MATMUL,
    NORMALISATION,
    PRODUCT,
)


def source(graph: GraphBuilder, name: str, elements: float) -> int:
    """Add an input of the network as a layer of its own; it takes no time."""
    graph.layer(name)
    return graph.add("input", INPUT, (), elements)


def embedding(
    graph: GraphBuilder,
    ids: int,
    rows: int,
    width: int,
    tokens: int,
    tied_to: int | None = None,
) -> int:
    """Add the lookup of ``tokens`` rows in a table of ``rows`` times ``width`` elements."""
    elements = tokens * width
    parameters = 0 if tied_to is not None else rows * width
    return graph.add(
        "gather",
        LOOKUP,
        (ids,),
        elements,
        parameters=parameters,
        traffic=2 * elements,
        tied_to=tied_to,
    )


def dense(
    graph: GraphBuilder,
    name: str,
    value: int,
    rows: int,
    width_in: int,
    width_out: int,
    bias: bool = True,
) -> int:
    """Add the product of ``rows`` vectors with a weight matrix, and a bias."""
    elements, flops = rows * width_out, 2 * rows * width_in * width_out
    label = f"{name}_matmul" if name else "matmul"
    product = graph.add(label, MATMUL, (value,), elements, flops=flops, parameters=width_in * width_out)
    if not bias:
        return product
    label = f"{name}_bias" if name else "bias"
    return graph.add(label, LINEAR, (product,), elements, parameters=width_out)


def pointwise(graph: GraphBuilder, name: str, values: Iterable[int], elements: float) -> int:
    """Add a non-linear operator whose backward reads its output."""
    return graph.add(name, ACTIVATION, values, elements, flops=8 * elements)


def product(graph: GraphBuilder, name: str, values: Iterable[int], elements: float) -> int:
    """Add a non-linear operator whose backward reads its inputs."""
    return graph.add(name, PRODUCT, values, elements, flops=8 * elements)


def linear(graph: GraphBuilder, name: str, values: Iterable[int], elements: float) -> int:
    """Add an elementwise operator whose backward needs no stored tensor."""
    return graph.add(name, LINEAR, values, elements, flops=elements)


def normalise(graph: GraphBuilder, name: str, value: int, elements: float, parameters: float) -> int:
    """Add a normalisation, which reads its input twice."""
    traffic = 3 * elements + parameters
    return graph.add(
        name,
        NORMALISATION,
        (value,),
        elements,
        flops=8 * elements,
        parameters=parameters,
        traffic=traffic,
    )


def dropout(graph: GraphBuilder, value: int, elements: float, training: bool, name: str = "dropout") -> int:
    """Add dropout when training; inference has none."""
    return pointwise(graph, name, (value,), elements) if training else value


def loss(graph: GraphBuilder, logits: Iterable[int], elements: float) -> int:
    """Add the cross-entropy of some logits as a layer of its own, with a scalar result."""
    graph.layer("loss")
    inputs = tuple(logits)
    return graph.add("cross_entropy", NORMALISATION, inputs, 1, flops=8 * elements, kernels=2)
