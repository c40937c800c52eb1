"""A bound on the time of a batch under a layout that holds however its layers are dealt to stages."""

from __future__ import annotations

import math

import numpy as np

from partitioner.planning.layouts.costs import LayerCosts
from partitioner.planning.layouts.timing import LayoutRun

SLACK = 1e-6  # of a block: what memory that just suffices may lack by rounding


def least_time(run: LayoutRun) -> float:
    """Return the milliseconds that a batch takes at least, however layers are dealt; infinity if none fits.

    The loads of the p devices, tensors that they receive included, add up to T. All of them run M
    microbatches and exchange gradients, which takes E in total, so that one ends after (M T + E) / p. Under
    1F1B, devices before device s delay its first microbatch and follow its last one, so that P_s + M L_s
    bounds the batch, too; the least largest one is T / (1 - (1 - 1 / M)^p). The optimizer's step takes at
    least its mean.
    """
    layers, layout, p = run.costs.layers(run.layout), run.layout, run.layout.pipeline
    if not may_fit(run, layers):
        return math.inf
    sends = int((run.device[1:] != run.device[:-1]).sum())
    sent = float(run.sent(layers.output[:-1]).min()) if sends else 0.0
    total = float((layers.forward + layers.backward).sum()) + 2 * sends * sent
    count = run.microbatches
    gradients, routed = (np.array(each.sum() / p) for each in (layers.gradients, layers.routed))
    exchange = float(run.ring(gradients, routed, 1 / p if routed else 0.0))  # one device has experts or more
    least = count * total / p + exchange
    if layout.virtual_stages == 1 and layout.schedule == "1f1b":
        least = max(least, total / (1 - (1 - 1 / count) ** p))
    return least + float(run.update(layers).sum()) / p


def may_fit(run: LayoutRun, layers: LayerCosts) -> bool:
    """Return whether the memory of all devices may suffice for the blocks, however they are dealt.

    A device holds h_c microbatches of its stage c in the moment that asks for the most. With n blocks of s
    bytes of states and a bytes of activations each, at least one in each of its stages (none in those at the
    ends that the layers before and after the blocks may fill), it needs at least
    n (s + a min h) + a sum over stages (h_c - min h). The devices' largest n must add up to all blocks.
    """
    costs, memory = run.costs, run.costs.cluster.memory
    states = layers.parameters + layers.gradients + layers.optimizer
    if states.sum() / run.layout.pipeline > memory:
        return False
    blocks = slice(costs.first_block, costs.first_block + len(costs.decoder.blocks))
    each, kept = float(states[blocks].min()), float(layers.activations[blocks].min())
    room, after = memory - float(layers.workspace[blocks].min()), len(states) - blocks.stop
    most = 0.0
    for rank, held in enumerate(run.held):
        owned = np.flatnonzero(run.device == rank)
        least = held.min(axis=1)
        whole = (held - least[:, None])[:, (owned >= blocks.start) & (owned < run.layout.stages - after)].sum(
            axis=1
        )
        most += max(0.0, math.floor(float(((room - kept * whole) / (each + kept * least)).min()) + SLACK))
    return most >= len(costs.decoder.blocks)
