"""One user's tokens as soon as possible: layers on GPUs or a CPU, or their experts alone on the CPU.

A token takes the sum of all layers on their devices, and of the transfers between them; memory holds the
weights and one context. GPUs of a kind follow one another, the kinds in any order. The best placement
(:class:`OffloadedChain`) is evaluated as a chain in which experts are nodes of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations

import numpy as np

from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.several_kinds import joined
from partitioner.planning.evaluate import evaluate
from partitioner.planning.serving.offload import EXPERTS, GPU, HOST, LayerChoice, OffloadedChain
from partitioner.planning.serving.pipelines import PipelineRun, ServingPipeline
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.layer import Layer

PREFILL, DECODE, WEIGHTS = range(3)  # rows of what experts have


@dataclass(frozen=True, eq=False)
class OneUserRun:
    """A pipeline for one sequence."""

    run: PipelineRun

    @cached_property
    def host(self) -> int | None:
        """The number of the kind that is a CPU; None without one."""
        return next((k for k, kind in enumerate(self.run.layout.kinds) if kind.device.cpu), None)

    @cached_property
    def experts(self) -> list[Floats]:
        """What experts have of the layers by kind (:meth:`ServingCosts.experts`)."""
        layout = self.run.layout
        return [self.run.costs.experts(*each) for each in zip(layout.kinds, layout.tensor, strict=True)]

    @cached_property
    def own(self) -> Floats:
        """Bytes of the experts of each layer that may lie on a CPU."""
        own = np.max([each[WEIGHTS] for each in self.experts], axis=0)
        return np.asarray(own if self.host is not None else 0 * own)

    @cached_property
    def sent(self) -> Floats:
        """Milliseconds in which a token's result of each layer reaches another device."""
        load, sent = self.run.costs.load, np.max([each.sent for each in self.run.layers], axis=0)
        return np.asarray(sent / (load.prompt + load.generate) / self.run.costs.network * MS_PER_SECOND)

    def solved(self) -> ServingPipeline | None:
        """Return the pipeline in which one sequence has its tokens soonest; None if none fits, with proof."""
        ways = [
            (found, order) for order in self._orders() if (found := self._chain(order).best()) is not None
        ]
        if not ways:
            return None
        (least, choices), order = min(ways, key=lambda way: way[0][0])
        return self._pipeline(choices, order, least)

    def _orders(self) -> list[list[int]]:
        """Return the kinds of the GPUs in every order of the kinds."""
        groups = self.run.layout.groups
        kinds = [k for k in range(len(groups)) if k != self.host]
        return [[k for k in each for _ in range(groups[k])] for each in permutations(kinds)]

    def _chain(self, order: list[int]) -> OffloadedChain:
        run = self.run
        decode = [layers.decode for layers in run.layers]
        never = np.full(len(run.sizes), math.inf)
        return OffloadedChain(
            np.array([*(decode[k] for k in order), never if self.host is None else decode[self.host]]),
            np.array(
                [self.experts[k][DECODE] for k in [*order, order[0] if self.host is None else self.host]]
            ),
            np.ceil(run.sizes),
            np.floor(self.own),
            np.array([run.room[k] for k in order]),
            self.sent,
            math.inf if self.host is None else run.room[self.host],
        )

    def _pipeline(self, choices: list[LayerChoice], order: list[int], least: float) -> ServingPipeline:
        run, devices = self.run, self.run.devices(through_host=True)
        numbers = [order[:i].count(k) for i, k in enumerate(order)]
        names = [devices.kinds[k].device(i) for k, i in zip(order, numbers, strict=True)]
        host = "" if self.host is None else devices.kinds[self.host].device(0)
        layers = [host if each.choice == HOST else names[each.gpu] for each in choices]
        placement: dict[int | str, str] = {}
        for i, (name, each) in enumerate(zip(layers, choices, strict=True)):
            placement[str(i)] = name
            if self.own[i]:
                placement[f"{i} experts"] = name if each.choice != EXPERTS else host
        evaluation = evaluate(
            self.graph(), devices, placement, "latency", subgraphs_per_accelerator=len(placement)
        )
        rate = MS_PER_SECOND / evaluation.value
        kinds = {kind.device(i): kind.name for kind in devices.kinds for i in range(kind.count)}
        full = max(load.memory / load.memory_limit for load in evaluation.loads if load.memory_limit)
        return ServingPipeline(
            run.layout,
            rate,
            max(rate, MS_PER_SECOND / least),
            self._first(choices, order),
            float(evaluation.value),
            float(full),
            tuple((kinds[name], layers.count(name)) for name in dict.fromkeys(layers)),
            placed=tuple(None if each.choice == HOST else each.gpu for each in choices),
            blocks=range(first := self._before(), first + len(run.costs.decoder.blocks)),
            experts=tuple(i for i, each in enumerate(choices) if each.choice == EXPERTS),
        )

    def _before(self) -> int:
        """Return how many layers come before the first block, which keep no cache."""
        return int(np.flatnonzero(self.run.layers[0].cache)[0])

    def _first(self, choices: list[LayerChoice], order: list[int]) -> float:
        """Return the milliseconds of the prompt and a step, and of the prompt between devices."""
        total, hops = 0.0, self.sent * self.run.costs.load.prompt
        before = None if choices[0].choice == HOST else choices[0].gpu
        for i, each in enumerate(choices):
            kind = self.host if each.choice == HOST else order[each.gpu]
            assert kind is not None
            layers = self.run.layers[kind]
            total += float(layers.prefill[i] + layers.decode[i])
            if each.choice == EXPERTS and self.host is not None:
                more = self.experts[self.host] - self.experts[kind]
                total += float(more[PREFILL, i] + more[DECODE, i] + hops[i])
            here = None if each.choice == HOST else each.gpu
            total += float(hops[i - 1]) if i and here != before else 0.0
            before = None if each.choice != GPU else here
        return total

    def graph(self) -> Graph:
        """Return the chain of the layers and their experts with a token's times, weights and one context."""
        run, own, graphs = self.run, self.own, {}
        sent = self.sent * run.costs.network / MS_PER_SECOND
        for kind, layers, experts in zip(run.layout.kinds, run.layers, self.experts, strict=True):
            rows = []
            for i, size in enumerate(run.sizes):
                apart = own[i] > 0
                time = float(layers.decode[i] - experts[DECODE, i] * apart)
                rows.append((str(i), time, float(size - own[i]), float(sent[i])))
                if apart:
                    rows.append((f"{i} experts", float(experts[DECODE, i]), float(own[i]), float(sent[i])))
            names = [row[0] for row in rows]
            graphs[kind.name] = Graph.chain(
                [
                    Layer(name, inputs=tuple(names[i - 1 : i]), forward=time, parameters=size, output=nbytes)
                    for i, (name, time, size, nbytes) in enumerate(rows)
                ],
                bandwidth=run.costs.network,
                training=False,
            )
        return joined(graphs)
