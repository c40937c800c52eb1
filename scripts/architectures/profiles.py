"""Profiles in PipeDream's text format: a forward graph of layers with the times of both passes."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from architectures.builder import GraphBuilder
from architectures.coarsen import coarsen
from architectures.cost_model import HOST, P100_16GB, V100_16GB, Accelerator
from architectures.gnmt import Translation, gnmt
from architectures.gradients import paired_operators
from architectures.operators import Operator
from architectures.resnet import BLOCKS_50, resnet
from architectures.vgg import vgg
from architectures.workload import Architecture


@dataclass(frozen=True)
class ProfiledNetwork:
    """A network, and the accelerator that it is profiled on.

    Attributes
    ----------
    title : str
        Architecture with its dimensions and batch.
    build : callable
        Fills a graph builder; its second argument tells whether to train.
    accelerator : Accelerator
        Device whose times are written.
    """

    title: str
    build: Architecture
    accelerator: Accelerator

    def text(self) -> str:
        """Return the text of the file."""
        graph = GraphBuilder(self.accelerator, HOST)
        self.build(graph, True)
        layers = coarsen(graph)
        nodes = _node_lines(layers, self.accelerator.element_bytes)
        edges = [
            f"\tnode{producer + 1} -- node{consumer + 1}"
            for consumer, layer in enumerate(layers)
            for producer in layer.inputs
        ]
        return "\n".join([*nodes, *edges, ""])

    def write(self, path: Path) -> None:
        """Write the file, and the folder that it belongs in."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text(), encoding="utf-8")

    def describe(self) -> str:
        """Return where the profile comes from."""
        return f"{self.title}; profile of layers, training, on {self.accelerator.name} accelerators."


def _node_lines(layers: list[Operator], element_bytes: int) -> list[str]:
    lines, inputs = [], 0
    for index, (layer, paired) in enumerate(zip(layers, paired_operators(layers), strict=True), 1):
        description = layer.name if layer.inputs else f"Input{inputs}"
        inputs += not layer.inputs
        fields = {
            "forward_compute_time": f"{layer.forward.accelerator:.3f}",
            "backward_compute_time": f"{layer.backward.accelerator if paired else 0:.3f}",
            "activation_size": f"{layer.output_bytes:.1f}",
            "parameter_size": f"{layer.parameters * element_bytes:.3f}",
        }
        numbers = ", ".join(f"{name}={value}" for name, value in fields.items())
        lines.append(f"node{index} -- {description} -- {numbers}")
    return lines


PROFILES: dict[str, ProfiledNetwork] = {
    "vgg16": ProfiledNetwork("VGG-16, batch 64", partial(vgg, batch=64), P100_16GB),
    "resnet50": ProfiledNetwork(
        "ResNet-50, batch 64", partial(resnet, batch=64, blocks=BLOCKS_50), P100_16GB
    ),
    "gnmt4": ProfiledNetwork(
        "GNMT, 4 + 4 LSTM layers of 1024 units, batch 64 x 50 tokens",
        partial(gnmt, shape=Translation(4, 1024, 32317, 64, 50)),
        V100_16GB,
    ),
}
