"""One network for one machine, and how it becomes an instance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from architectures.builder import GraphBuilder
from architectures.coarsen import coarsen
from architectures.cost_model import HOST
from architectures.document import Machine, Options
from architectures.emit import emit

Architecture = Callable[[GraphBuilder, bool], None]


@dataclass(frozen=True)
class Workload:
    """A network, the machine to split it over, and how the graph is written.

    Attributes
    ----------
    title : str
        Architecture with its dimensions and batch, for the description.
    build : callable
        Fills a graph builder; its second argument tells whether to train.
    machine : Machine
        Devices.
    options : Options
        How the graph is written.
    """

    title: str
    build: Architecture
    machine: Machine
    options: Options = field(default_factory=Options)

    def instance(self) -> dict[str, Any]:
        """Return the object in the instance format."""
        graph = GraphBuilder(self.machine.accelerator, HOST)
        self.build(graph, self.options.training)
        operators = graph.operators if self.options.operators else coarsen(graph)
        return emit(operators, self.machine, self.options, self.describe())

    def describe(self) -> str:
        """Return where the graph comes from, in a few sentences."""
        grain = "operator" if self.options.operators else "layer"
        mode = "training" if self.options.training else "inference"
        text = (
            f"{self.title}; {grain} graph, {mode}. Times from an analytic roofline model of "
            f"{self.machine.accelerator.name} accelerators and a {HOST.name}."
        )
        if self.options.host_only:
            text += f" Host only: {', '.join(sorted(self.options.host_only))}."
        return text
