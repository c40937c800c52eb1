"""Layers that compute again and states that replicas divide: memory and times against sums over layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import partitioner as pt
from partitioner.workload.training_states import OPTIMIZERS

BANDWIDTH = 1e9  # bytes a second: 1e6 a ms
SIZES = st.integers(0, 40).map(lambda size: size * 1e6)


@st.composite
def layer_lists(draw: st.DrawFn) -> list[pt.Layer]:
    """Layers that read one or two earlier ones."""
    found: list[pt.Layer] = []
    for i in range(draw(st.integers(1, 7))):
        earlier = draw(st.lists(st.integers(0, i - 1), max_size=2, unique=True)) if i else []
        read = tuple(f"l{j}" for j in earlier)
        count = draw(st.integers(1, 10)) * 1e6
        told = {"parameterCount": count} if draw(st.booleans()) else {}
        width = draw(st.sampled_from([2, 4])) if told else 4
        found.append(
            pt.Layer(
                f"l{i}",
                draw(st.floats(0.5, 9)),
                draw(st.floats(0.5, 9)),
                parameters=count * width,
                activations=draw(SIZES),
                output=draw(SIZES),
                inputs=read,
                optimizer=draw(SIZES),
                workspace=draw(SIZES),
                more=told,
            )
        )
    return found


def made(layers: list[pt.Layer], **options: Any) -> pt.Graph:
    """The graph of some layers, made with some options."""
    return pt.with_training_states(pt.Graph.chain(layers, bandwidth=BANDWIDTH), **options)


def received(layers: list[pt.Layer]) -> list[float]:
    """The bytes that each layer reads from others."""
    output = {layer.name: layer.output for layer in layers}
    return [sum(output[name] for name in layer.inputs or ()) for layer in layers]


@given(layer_lists())
def test_a_layer_that_is_computed_again_keeps_what_it_receives(layers: list[pt.Layer]) -> None:
    """Its workspace holds the rest while its backward pass runs, which takes the forward pass longer."""
    graph, count = made(layers, recompute="full") if any(x.activations for x in layers) else None, len(layers)
    for i, (layer, read) in enumerate(zip(layers, received(layers), strict=True)):
        if graph is None:
            return
        less = read < layer.activations
        assert graph.parts[3, i] == (read if less else layer.activations)
        assert graph.parts[4, count + i] == (layer.activations - read if less else 0)
        assert graph.parts[4, i] == layer.workspace
        assert graph.time[0, count + i] == pytest.approx(layer.backward + less * layer.forward)  # type: ignore[operator]
        assert graph.time[0, i] == layer.forward


@given(layer_lists(), st.integers(0, 3), st.integers(1, 64))
def test_replicas_divide_states(layers: list[pt.Layer], zero: int, replicas: int) -> None:
    """Rajbhandari et al. 2020: states, gradients, parameters; the last are gathered in both passes."""
    graph, count = made(layers, zero=zero, data_parallel=replicas), len(layers)
    for i, layer in enumerate(layers):
        share = [replicas if zero >= least else 1 for least in (3, 2, 1)]
        states = layer.parameters, layer.parameters, layer.optimizer
        assert [graph.parts[0, i], *graph.parts[1:3, count + i]] == pytest.approx(
            [size / part for size, part in zip(states, share, strict=True)]
        )
        gathered = zero == 3 and replicas > 1
        assert graph.parts[4, i] == pytest.approx(layer.workspace + gathered * 2 * layer.parameters)
        sent = gathered * layer.parameters * (replicas - 1) / replicas / BANDWIDTH * 1e3
        assert graph.time[0, i] == pytest.approx(max(layer.forward, sent))  # type: ignore[type-var]
        assert graph.time[0, count + i] == pytest.approx(max(layer.backward, 2 * sent))  # type: ignore[type-var]


@given(layer_lists(), st.sampled_from(sorted(OPTIMIZERS)))
def test_an_optimizer_keeps_bytes_of_each_parameter(layers: list[pt.Layer], name: str) -> None:
    """Adam 8, with a copy of narrower parameters 12 ... ; parameters without a number have four bytes."""
    graph, count = made(layers, optimizer=name), len(layers)
    for i, layer in enumerate(layers):
        number = layer.more.get("parameterCount", layer.parameters / 4)
        narrow = layer.parameters / number < 4
        each = {"adam": 8, "adam_8bit": 2, "momentum": 4, "sgd": 0}[name]
        each += 4 * (narrow and name != "adam_8bit")
        assert graph.parts[2, count + i] == pytest.approx(number * each)


@given(layer_lists(), st.integers(0, 3), st.integers(2, 8))
def test_what_has_been_made_stays(layers: list[pt.Layer], zero: int, replicas: int) -> None:
    options = {"zero": zero, "data_parallel": replicas, "optimizer": "sgd"}
    once = made(layers, **options)
    assert pt.with_training_states(once, **options).digest == once.digest


def operators() -> pt.Graph:
    """Two layers of two operators each, forward and backward; the second reads one tensor twice."""
    edges = [(0, 1), (1, 2), (1, 3), (2, 3), (4, 5), (5, 6), (6, 7), *[(i, 7 - i) for i in range(4)]]
    return pt.Graph.from_arrays(
        {"gpu": np.arange(1.0, 9.0)},
        edges,
        [{0: 1.0, 1: 2.0, 2: 3.0}.get(source, 0.5) for source, _ in edges],
        backward=[False] * 4 + [True] * 4,
        layer=["a", "a", "b", "b", "b", "b", "a", "a"],
        activations=[5e6, 5e6, 5e6, 5e6, 0, 0, 0, 0],
        parameters=[4e6] * 4 + [0] * 4,
        gradients=[0] * 4 + [4e6] * 4,
        extras=pt.workload.graph.Extras({"bandwidth": BANDWIDTH, "timeUnit": "ms"}),
    )


def test_operators_of_a_layer_stay_together() -> None:
    """A tensor that two operators of a layer read is received once."""
    graph = pt.with_training_states(operators(), recompute="full")
    assert graph.parts[3].tolist() == [0, 0, 2e6, 0, 0, 0, 0, 0]
    assert graph.parts[4].tolist() == [0, 0, 0, 0, 8e6, 0, 10e6, 0]
    assert graph.time[0].tolist() == [1, 2, 3, 4, 5 + 7, 6, 7 + 3, 8]
    assert [sorted(np.flatnonzero(graph.color == i)) for i in range(2)] == [[0, 1, 6, 7], [2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("graph", "options", "message"),
    [
        (operators(), {"recompute": "selective"}, "recompute = 'selective': is for configs"),
        (operators(), {"zero": 4}, "zero = 4: must be an integer from 0 to 3"),
        (operators(), {"optimizer": "lion"}, "optimizer = 'lion'"),
        (pt.Graph.from_arrays({"gpu": [1.0]}), {"zero": 1}, "zero = 1: is for training"),
        (
            pt.Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], backward=[False, True], size=4.0),
            {"recompute": "full"},
            "recompute = 'full': the graph does not say the activations",
        ),
        (
            pt.with_training_states(operators(), zero=1, data_parallel=2),
            {"zero": 2},
            "zero = 2: the graph has been made with zero = 1",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(graph: pt.Graph, options: dict[str, Any], message: str) -> None:
    with pytest.raises(pt.OptionError) as error:
        pt.with_training_states(graph, **options)
    assert message in str(error.value)
