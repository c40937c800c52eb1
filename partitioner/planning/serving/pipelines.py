"""Pipelines that serve a model on groups of GPUs: their bound in closed form, and their layers by `solve`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.interruption import StopEvent
from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.several_kinds import joined
from partitioner.planning.pools.pool import PoolPart
from partitioner.planning.serving.costs import ServedLayers, ServingCosts
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.layer import Layer

SLACK = 1e-9  # of rounding


@dataclass(frozen=True)
class ServingLayout(PoolPart):
    """How a part of a pool serves: copies of a pipeline whose stages are groups of GPUs.

    Parameters
    ----------
    batch
        Sequences that get a token together in a stage; each stage has a batch of its own.
    expert
        How many copies divide the experts of a mixture among them.
    """

    batch: int = 1
    expert: int = 1

    @property
    def sequences(self) -> int:
        """The sequences that a pipeline works on."""
        return self.batch * self.stages

    @property
    def degrees(self) -> str:
        """The name without the batch."""
        return super().name + (f" EP{self.expert}" if self.expert > 1 else "")

    @property
    def name(self) -> str:
        """A short name, such as ``"2 x (A100-80 TP4 PP2, RTX 4090 TP1 PP4) EP2 B16"``."""
        return f"{self.degrees} B{self.batch}"


@dataclass(frozen=True)
class ServingPipeline:
    """A layout with its layers dealt to stages.

    Parameters
    ----------
    layout
        The groups of GPUs.
    tokens_per_second
        Tokens that all copies generate.
    bound
        The most that any dealing of the layers has.
    ttft, tpot
        Milliseconds until the first token, and for each further one.
    memory
        The largest part of a GPU's usable memory that is taken.
    stages
        The kind of each stage, and how many layers it has, in the order of the pipeline.
    """

    layout: ServingLayout
    tokens_per_second: float
    bound: float
    ttft: float
    tpot: float
    memory: float
    stages: tuple[tuple[str, int], ...]

    @property
    def used(self) -> dict[str, int]:
        """How many GPUs of each kind all copies take, without those that have no layer."""
        layout, names = self.layout, [kind for kind, _ in self.stages]
        kinds = zip(layout.kinds, layout.tensor, strict=True)
        return {kind.name: layout.copies * t * names.count(kind.name) for kind, t in kinds}


@dataclass(frozen=True, eq=False)
class PipelineRun:
    """A layout with the costs of the model on its groups."""

    costs: ServingCosts
    layout: ServingLayout

    @property
    def layers(self) -> list[ServedLayers]:
        """The costs of the layers by kind."""
        layout = self.layout
        return [
            self.costs.layers(kind, tensor, layout.batch, layout.expert)
            for kind, tensor in zip(layout.kinds, layout.tensor, strict=True)
        ]

    @property
    def sizes(self) -> Floats:
        """Bytes of every layer with all sequences of a pipeline, the most of the kinds, shape (layers,)."""
        sequences = self.layout.sequences
        return np.asarray(np.max([each.weights + sequences * each.cache for each in self.layers], axis=0))

    @property
    def room(self) -> list[float]:
        """Bytes of a group of each kind beside what its GPUs need while a prompt passes."""
        layout = self.layout
        return [
            tensor * max(0.0, kind.memory - float(each.workspace.max()))
            for kind, tensor, each in zip(layout.kinds, layout.tensor, self.layers, strict=True)
        ]

    def most(self) -> float:
        """Return the tokens per second that no dealing of the layers exceeds; 0 if none is within the limits.

        With W_k the time of a request in all layers on kind k, and g_k groups of it, weights a_k = 1 / W_k
        over the sum of g_k / W_k make the sum over layers of the least a_k w_lk a bound on the largest load.
        """
        load, layout = self.costs.load, self.layout
        if self.sizes.sum() > np.dot(self.room, layout.groups) * (1 + SLACK):
            return 0.0
        requests = np.array([self.costs.request(each, layout.batch) for each in self.layers])
        shares = 1 / requests.sum(axis=1)
        shares /= np.dot(shares, layout.groups)
        least = float((shares[:, None] * requests).min(axis=0).sum())
        least = max(least, float(requests.min(axis=0).max()))
        first = np.min([each.prefill + each.decode for each in self.layers], axis=0).sum()
        if layout.sequences * least > load.generate * load.tpot * (1 + SLACK) or first > load.ttft * (
            1 + SLACK
        ):
            return 0.0
        return layout.copies * load.generate / least * MS_PER_SECOND

    def solved(self, seconds: float | None, stop: StopEvent | None) -> tuple[ServingPipeline | None, float]:
        """Return the pipeline with the most tokens per second, and the bound on them.

        None if no dealing is found, or the one with the most tokens breaks a limit of time; the bound is then
        0 only where it is proven that none fits and is within the limits.
        """
        try:
            plan = self._plan(False, seconds, stop)
        except InfeasibleError:
            return None, 0.0
        except NoPlanFound:
            return None, self.most()
        rate, load = self.layout.copies * self.costs.load.generate * MS_PER_SECOND, self.costs.load
        found = self._pipeline(plan, rate / plan.value, rate / plan.bound)
        late = found.ttft > load.ttft * (1 + SLACK)
        if not late and found.tpot <= load.tpot * (1 + SLACK):
            return found, found.bound
        alike = len(self.layout.kinds) == 1  # the first token then takes all dealings the same time
        hopeless = (late and alike) or self._step(found.bound) > load.tpot * (1 + SLACK)
        return None, 0.0 if hopeless else found.bound

    def for_one_user(
        self, seconds: float | None, stop: StopEvent | None
    ) -> tuple[ServingPipeline | None, float]:
        """Return the pipeline in which one sequence gets its tokens soonest, and the bound on their rate.

        None if none is found; the bound is 0 only where it is proven that no dealing fits.
        """
        try:
            plan = self._plan(True, seconds, stop)
        except InfeasibleError:
            return None, 0.0
        except NoPlanFound:
            return None, np.inf
        found = self._pipeline(plan, MS_PER_SECOND / plan.value, MS_PER_SECOND / plan.bound, plan.value)
        return found, found.bound

    def _plan(self, alone: bool, seconds: float | None, stop: StopEvent | None) -> Plan:
        objective = "latency" if alone else "throughput"
        return solve(self.graph(alone), self.devices(alone), objective, time_limit=seconds, stop=stop)

    def _step(self, rate: float) -> float:
        """Return the milliseconds from a token of a sequence to its next one, at a rate of all copies."""
        return self.layout.sequences * self.layout.copies / rate * MS_PER_SECOND

    def graph(self, alone: bool = False) -> Graph:
        """Return the chain of the layers: times of a request, or of a token of a sequence that is `alone`."""
        load, sizes = self.costs.load, self.sizes
        graphs = {}
        for kind, each in zip(self.layout.kinds, self.layers, strict=True):
            times = each.decode if alone else self.costs.request(each, self.layout.batch)
            sent = each.sent / (load.prompt + load.generate) if alone else each.sent
            rows = zip(times.tolist(), sizes.tolist(), sent.tolist(), strict=True)
            layers = [
                Layer(str(i), inputs=(str(i - 1),) * (i > 0), forward=time, parameters=size, output=nbytes)
                for i, (time, size, nbytes) in enumerate(rows)
            ]
            graphs[kind.name] = Graph.chain(layers, bandwidth=self.costs.network, training=False)
        return joined(graphs)

    def devices(self, alone: bool = False) -> Devices:
        """Return the groups of one pipeline as devices, those without memory of their own as CPUs."""
        layout = self.layout
        kinds = [
            DeviceKind(kind.name, count, memory=room, pays_communication=not kind.device.cpu)
            for kind, count, room in zip(layout.kinds, layout.groups, self.room, strict=True)
        ]
        direct = not alone and all(kind.pays_communication for kind in kinds)
        return Devices(tuple(kinds), route="direct" if direct else "host")

    def _pipeline(self, plan: Plan, rate: float, bound: float, tpot: float | None = None) -> ServingPipeline:
        layout = self.layout
        of_device = {
            kind.device(i): (k, kind)
            for k, kind in enumerate(self.devices(True).kinds)
            for i in range(kind.count)
        }
        names = [plan.placement[str(i)] for i in range(len(self.sizes))]
        kind = np.array([of_device[name][0] for name in names])
        at = np.arange(len(kind))
        first = np.array([each.prefill + each.decode for each in self.layers])[kind, at].sum()
        used = {name: sum(self.sizes[i] for i in at if names[i] == name) for name in dict.fromkeys(names)}
        full = max(used[name] / self.room[of_device[name][0]] for name in used)
        stages = tuple((of_device[name][1].name, names.count(name)) for name in used)
        each = self._step(rate) if tpot is None else tpot
        return ServingPipeline(layout, rate, max(rate, bound), float(first), each, float(full), stages)
