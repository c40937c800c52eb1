"""Merge the operators of each layer, to turn an operator graph into a layer graph."""

from collections.abc import Sequence

from architectures.builder import GraphBuilder
from architectures.operators import Operator, Times


def coarsen(builder: GraphBuilder) -> list[Operator]:
    """Return one operator per layer of a finished graph.

    Times, parameters and activations add up; the output of a layer is every tensor that
    another layer reads. Layers are filled one after another and read only earlier
    operators, so that the result is acyclic.

    Parameters
    ----------
    builder : GraphBuilder
        The operator graph.

    Returns
    -------
    list of Operator
        The layers in their order of construction.
    """
    operators = builder.operators
    members: dict[int, list[int]] = {}
    for index, operator in enumerate(operators):
        members.setdefault(operator.layer, []).append(index)
    place = {layer: position for position, layer in enumerate(members)}
    exported = _exported(operators)
    return [
        _merge(operators, indices, exported, place, builder.layers[layer])
        for layer, indices in members.items()
    ]


def _exported(operators: Sequence[Operator]) -> set[int]:
    """Return the operators that another layer reads, and those that nothing reads."""
    read = {producer for operator in operators for producer in operator.inputs}
    crossing = {
        producer
        for operator in operators
        for producer in operator.inputs
        if operators[producer].layer != operator.layer
    }
    return crossing | (set(range(len(operators))) - read)


def _merge(
    operators: Sequence[Operator],
    indices: Sequence[int],
    exported: set[int],
    place: dict[int, int],
    name: str,
) -> Operator:
    group = [operators[index] for index in indices]
    own = place[group[0].layer]
    reads = {place[operators[producer].layer] for member in group for producer in member.inputs}
    saved = {place[operators[producer].layer] for member in group for producer in member.saved}
    ties = [place[operators[tie].layer] for member in group if (tie := member.tied_to) is not None]
    return Operator(
        name=name,
        layer=group[0].layer,
        inputs=tuple(sorted(reads - {own})),
        saved=tuple(sorted(saved)),
        output_bytes=sum(operators[index].output_bytes for index in indices if index in exported),
        activation_bytes=sum(member.activation_bytes for member in group),
        parameters=sum(member.parameters for member in group),
        forward=_total([member.forward for member in group]),
        backward=_total([member.backward for member in group if member.gradient]),
        gradient=any(member.gradient for member in group),
        tied_to=ties[0] if ties else None,
    )


def _total(times: Sequence[Times]) -> Times:
    return Times(sum(time.accelerator for time in times), sum(time.host for time in times))
