"""Which operators take part in the backward pass."""

from collections.abc import Sequence

from architectures.operators import Operator


def paired_operators(operators: Sequence[Operator]) -> list[bool]:
    """Tell which operators have a mirror: a gradient, and a way to the last operator."""
    paired = [False] * len(operators)
    paired[-1] = operators[-1].gradient
    for index in reversed(range(len(operators))):
        if paired[index]:
            for producer in operators[index].inputs:
                paired[producer] = paired[producer] or operators[producer].gradient
    return paired


def gradient_consumers(operators: Sequence[Operator], paired: Sequence[bool]) -> list[list[int]]:
    """Return, for each operator, the consumers whose mirrors send it a gradient."""
    consumers: list[list[int]] = [[] for _ in operators]
    for index, operator in enumerate(operators):
        if paired[index]:
            for producer in operator.inputs:
                consumers[producer].append(index)
    return consumers
