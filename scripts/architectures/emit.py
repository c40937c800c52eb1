"""Turn costed operators into the JSON object of an instance, with the backward part."""

from collections.abc import Iterator, Sequence
from typing import Any

from architectures.cost_model import (
    HOST,
    LINEAR,
    TRAINING_BYTES_PER_PARAMETER,
    Processor,
    time_ms,
)
from architectures.document import Document, Machine, Options
from architectures.gradients import gradient_consumers, paired_operators
from architectures.operators import Operator, Times


def emit(
    operators: Sequence[Operator], machine: Machine, options: Options, description: str
) -> dict[str, Any]:
    """Return the JSON object of one instance.

    Parameters
    ----------
    operators : sequence of Operator
        The forward graph, producers first; the last one is the loss or the result.
    machine : Machine
        Devices; the memory of the accelerator is the limit per device.
    options : Options
        How the graph is written.
    description : str
        Where the graph comes from.

    Returns
    -------
    dict
        Object with the fields of the instance format; times in ms, sizes in bytes.
    """
    writer = _Writer(operators, Document(machine.accelerator, options))
    writer.forward()
    if options.training:
        writer.backward()
    return {
        "description": description,
        "maxSizePerFPGA": int(machine.accelerator.memory),
        "maxFPGAs": machine.accelerators,
        "maxCPUs": machine.cpus,
        "nodes": writer.document.nodes,
        "edges": writer.document.edges,
    }


class _Writer:
    """Writes the operators of one graph into a document, forward and then backward."""

    def __init__(self, operators: Sequence[Operator], document: Document) -> None:
        self.operators = operators
        self.document = document
        training = document.options.training
        self.paired = paired_operators(operators) if training else [False] * len(operators)
        self.gradient_bytes = document.accelerator.element_bytes
        self.state_bytes: float = self.gradient_bytes
        if training:
            self.state_bytes = TRAINING_BYTES_PER_PARAMETER - self.gradient_bytes
        self.nodes: list[int] = []
        self.weights: dict[int, int] = {}
        self.mirrors: dict[int, int] = {}

    def forward(self) -> None:
        """Write every operator with its parameters and the edges into it."""
        shared = {operator.tied_to for operator in self.operators}
        for index, operator in enumerate(self.operators):
            owner = index if operator.tied_to is None else operator.tied_to
            color = owner + 1 if self.paired[index] or owner in shared else None
            memory = self._write_state(index, operator, color)
            memory = {"activations": self._held_bytes(operator), **memory}
            times, output = operator.forward, operator.output_bytes
            self.nodes.append(
                self.document.node(operator.name, times, memory, output, layer=operator.layer, color=color)
            )
            for source in self._sources(owner, operator.inputs):
                self.document.edge(source, self.nodes[index])

    def _held_bytes(self, operator: Operator) -> float:
        """Return the memory of activations: inference keeps only what leaves the operator."""
        if self.document.options.training:
            return operator.activation_bytes
        return min(operator.activation_bytes, operator.output_bytes)

    def _write_state(self, index: int, operator: Operator, color: int | None) -> dict[str, float]:
        """Write the parameters as a node of their own, or return what they and the optimizer take."""
        state = {
            "parameters": operator.parameters * self.gradient_bytes,
            "optimizer": operator.parameters * (self.state_bytes - self.gradient_bytes),
        }
        if not (self.document.options.separate_weights and operator.parameters):
            return state
        output = operator.parameters * self.document.accelerator.element_bytes
        name, layer, free = f"{operator.name}/weight", operator.layer, Times(0.0, 0.0)
        self.weights[index] = self.document.node(name, free, state, output, layer=layer, color=color)
        return {}

    def _sources(self, owner: int, producers: Sequence[int]) -> Iterator[int]:
        """Yield the nodes of some producers, and that of the parameters if there is one."""
        yield from (self.nodes[producer] for producer in producers)
        if owner in self.weights:
            yield self.weights[owner]

    def backward(self) -> None:
        """Write the mirror of every operator that has one, last first."""
        consumers = gradient_consumers(self.operators, self.paired)
        for index in reversed(range(len(self.operators))):
            if self.paired[index]:
                incoming = self._incoming_gradients(index, consumers[index])
                self._write_mirror(index, incoming)

    def _write_mirror(self, index: int, incoming: Sequence[int]) -> None:
        operator = self.operators[index]
        owner = index if operator.tied_to is None else operator.tied_to
        gradients = sum(
            self.operators[producer].output_bytes for producer in operator.inputs if self.paired[producer]
        )
        held = gradients if operator.activation_bytes else 0.0
        mirror = self.document.node(
            f"{operator.name}/backward",
            operator.backward,
            {"gradients": operator.parameters * self.gradient_bytes, "workspace": held},
            gradients,
            layer=operator.layer,
            backward=True,
            color=owner + 1,
        )
        self.mirrors[index] = mirror
        for source in (*self._sources(owner, operator.saved), *incoming):
            self.document.edge(source, mirror)

    def _incoming_gradients(self, index: int, consumers: Sequence[int]) -> list[int]:
        """Return the nodes that produce the gradient of an output, orphans included."""
        sources = [self.mirrors[consumer] for consumer in consumers]
        if not self.document.options.operators or len(sources) == 1:
            return sources
        operator = self.operators[index]
        inputs = sources or [self.nodes[index]]
        last = "gradient_sum" if sources else "gradient_seed"
        size = operator.output_bytes
        orphan = self.document.node(
            f"{operator.name}/{last}",
            self._vector_times((len(inputs) + 1) * size),
            {"workspace": size},
            size,
            layer=operator.layer,
            backward=True,
        )
        for source in inputs:
            self.document.edge(source, orphan)
        return [orphan]

    def _vector_times(self, traffic: float) -> Times:
        def on(processor: Processor) -> float:
            return time_ms(processor, LINEAR, 0.0, traffic)

        return Times(on(self.document.accelerator), on(HOST))
