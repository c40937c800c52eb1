"""Times and memory of a model's layers under a layout, and of the stages that layers are dealt to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from partitioner.formats.llm.decoder import Decoder
from partitioner.formats.llm.layout_options import LayoutOptions, numbers_of, parallelism_of
from partitioner.formats.llm.model import Setting, layers_of
from partitioner.formats.llm.operators import TokenRun, expert_parameters
from partitioner.formats.llm.parallelism import Parallelism, one_share
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.workload.graph import Floats
from partitioner.workload.layer import Layer

PARAMETERS_DIVIDED = 3  # the ZeRO number from which replicas divide the parameters
UPDATES_APART = 1_000_000_000  # samples between updates: their time is not in the layers
FIELDS = ("forward", "backward", "parameters", "gradients", "optimizer", "activations", "workspace", "output")
COLLECTIVES = "collectiveTime"  # a further field of layers
SUMMED = (*FIELDS[:6], "routed", "updated", "collectives")


class LayerCosts(NamedTuple):
    """What every layer of a model takes on one GPU, each of shape (layers,).

    Parameters
    ----------
    forward, backward
        Milliseconds of a microbatch, with the collectives of tensor and context parallelism.
    parameters, gradients, optimizer
        Bytes of its states.
    activations, workspace
        Bytes that it keeps of a microbatch, and those that it needs while it runs.
    output
        Bytes that it sends to the next layer.
    routed
        Bytes of those gradients that belong to experts which devices divide among them.
    updated
        Bytes of the parameters and gradients that the optimizer's step reads and writes here.
    collectives
        Milliseconds that collectives add to both passes.
    """

    forward: Floats
    backward: Floats
    parameters: Floats
    gradients: Floats
    optimizer: Floats
    activations: Floats
    workspace: Floats
    output: Floats
    routed: Floats
    updated: Floats
    collectives: Floats


@dataclass(frozen=True, eq=False)
class ModelCosts:
    """The costs of a model on a cluster, computed once for each choice of what they depend on.

    Parameters
    ----------
    decoder
        The model.
    cluster
        The GPUs.
    sequence
        Tokens of a sequence.
    dtype
        The type of the factors of products.
    options
        Types of numbers and the optimizer, as in :class:`LayoutOptions`.
    """

    decoder: Decoder
    cluster: Cluster
    sequence: int
    dtype: str
    options: LayoutOptions = field(default_factory=LayoutOptions)
    _known: dict[tuple[Any, ...], LayerCosts] = field(default_factory=dict)

    def layers(self, layout: ClusterLayout) -> LayerCosts:
        """Return the costs of the layers under a layout.

        Times depend on ZeRO only where replicas divide the parameters; else its shares of the states are
        those of the layers without it.
        """
        shares, gathers = layout.data * layout.context, layout.zero == PARAMETERS_DIVIDED
        whole = (layout.tensor, layout.context, layout.expert, layout.microbatch, layout.recompute)
        key = (*whole, layout.zero, shares if layout.zero else 1)
        if key not in self._known:
            if layout.zero == 0 or gathers:
                self._known[key] = self._computed(layout)
            else:
                self._known[key] = self._divided(layout)
        return self._known[key]

    @cached_property
    def _whole(self) -> list[Layer]:
        """The layers on one GPU that has all of them."""
        return layers_of(self.decoder, self._setting(ClusterLayout()))

    @cached_property
    def layer_names(self) -> tuple[str, ...]:
        """The names of the layers, first to last."""
        return tuple(layer.name for layer in self._whole)

    @cached_property
    def first_block(self) -> int:
        """The number of layers before the first block."""
        return next(
            i for i, name in enumerate(self.layer_names) if name.startswith(f"{self.decoder.names.blocks}.")
        )

    def flops(self) -> float:
        """Return the operations of the forward pass of a sequence."""
        return float(sum(layer.more["flops"] for layer in self._whole))

    def borders(self, stages: int) -> tuple[int, ...]:
        """Return where stages begin and end: blocks dealt evenly, what comes before and after at the ends.

        If the blocks are no multiple of the stages, the last and the first stages have one less.
        """
        blocks, first = len(self.decoder.blocks), self.first_block
        fewer, more = divmod(blocks, stages)
        order = [
            i // 2 if i % 2 else stages - 1 - i // 2 for i in range(stages)
        ]  # last, first, last but one, ...
        dealt = [fewer] * stages
        for i in order[::-1][:more]:
            dealt[i] += 1
        inner = first + np.cumsum(dealt)[:-1]
        return (0, *inner.tolist(), len(self.layer_names))

    def _setting(self, layout: ClusterLayout) -> Setting:
        options: LayoutOptions = {
            **self.options,
            "tensor": layout.tensor,
            "sequence_parallel": layout.tensor > 1 and self.options.get("sequence_parallel", True),
            "context_parallel": layout.context,
            "expert_parallel": layout.expert,
            "data_parallel": layout.data * layout.context,
            "zero": layout.zero,
            "recompute": layout.recompute,
        }
        parallelism = parallelism_of(options)
        run = TokenRun(layout.microbatch, self.sequence, 0, layout.context, parallelism.scattered)
        numbers = numbers_of(self.dtype, True, options)
        device = replace(self.cluster.device, peer=self.cluster.peer)
        network, once = self.cluster.network, UPDATES_APART
        return Setting(
            run, device, self.dtype, None, True, numbers, network, once, parallelism, server=self.cluster.node
        )

    def _divided(self, layout: ClusterLayout) -> LayerCosts:
        """Return the costs of all layers without ZeRO, with their states divided."""
        whole, parallelism = self.layers(replace(layout, zero=0)), self._setting(layout).parallelism
        optimizer, gradients = (_held(whole, parallelism, zero) for zero in (1, 2))
        return whole._replace(
            gradients=whole.gradients * gradients,
            optimizer=whole.optimizer * optimizer,
            routed=whole.routed * parallelism.held(2, 1.0),
            updated=whole.updated * optimizer,
        )

    def _computed(self, layout: ClusterLayout) -> LayerCosts:
        """Return the costs of all layers; under ZeRO those of the optimizer's step are without its shares."""
        setting = self._setting(layout)
        own = one_share(self.decoder, setting.parallelism)
        layers = layers_of(own, setting)
        found = {name: np.array([getattr(one, name) or 0.0 for one in layers], float) for name in FIELDS}
        routed = np.zeros(len(layers))
        if layout.expert > 1:
            experts = [expert_parameters(block.network, own.hidden) for block in own.blocks]
            at = slice(self.first_block, self.first_block + len(experts))
            routed[at] = np.array(experts) * setting.numbers.gradients * setting.parallelism.held(2, 1.0)
        updated = found["gradients"] + found["parameters"]
        collectives = np.array([one.more.get(COLLECTIVES, 0.0) for one in layers], float)
        return LayerCosts(**found, routed=routed, updated=updated, collectives=collectives)


def _held(whole: LayerCosts, parallelism: Parallelism, zero: int) -> Floats:
    """Return the part of each layer's states that a replica holds if ZeRO divides them from a number on."""
    empty = np.zeros_like(whole.routed)
    routed = np.divide(whole.routed, whole.gradients, out=empty, where=whole.gradients > 0)
    return np.array([parallelism.held(zero, float(share)) for share in routed])


def summed(costs: LayerCosts, borders: Sequence[int]) -> LayerCosts:
    """Return the costs of stages: sums over their layers, the largest workspace, the output of the last."""
    starts = np.asarray(borders[:-1])
    sums = {name: np.add.reduceat(getattr(costs, name), starts) for name in SUMMED}
    workspace = np.maximum.reduceat(costs.workspace, starts)
    return LayerCosts(**sums, workspace=workspace, output=costs.output[np.asarray(borders[1:]) - 1])
