"""Pipelines that serve a model on groups of GPUs: their bound in closed form, and their layers by `solve`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from partitioner.base.errors import InfeasibleError, NoPlanFound
from partitioner.base.interruption import StopEvent
from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.several_kinds import joined
from partitioner.planning.evaluate import evaluate
from partitioner.planning.pools.pool import PoolPart
from partitioner.planning.serving.costs import BOTH, DECODE, PREFILL, ServedLayers, ServingCosts
from partitioner.planning.serving.dealing import SLACK, LimitedChain
from partitioner.planning.solve import solve
from partitioner.workload.devices import DeviceKind, Devices
from partitioner.workload.graph import Floats, Graph
from partitioner.workload.layer import Layer


@dataclass(frozen=True)
class ServingLayout(PoolPart):
    """How a part of a pool serves: copies of a pipeline whose stages are groups of GPUs.

    Parameters
    ----------
    batch
        Sequences that get a token together in a stage; each stage has a batch of its own.
    expert
        How many copies divide the experts of a mixture among them.
    role
        Whether it takes prompts (``"prefill"``), generates tokens (``"decode"``), or does both.
    """

    batch: int = 1
    expert: int = 1
    role: str = BOTH

    @property
    def sequences(self) -> int:
        """The sequences that a pipeline works on."""
        return self.batch * self.stages

    @property
    def degrees(self) -> str:
        """The name without the batch."""
        role = "" if self.role == BOTH else f"{self.role} "
        return role + super().name + (f" EP{self.expert}" if self.expert > 1 else "")

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
        Milliseconds until the first token, and for each further one; 0 where others do it.
    memory
        The largest part of a GPU's usable memory that is taken.
    stages
        The kind of each stage, and how many layers it has, in the order of the pipeline.
    prompts
        The part of its time that prompts take.
    placed, experts, blocks
        For one user the number of the GPUs' group that has each layer, None on a CPU; the layers whose
        experts alone are on a CPU; and those that are blocks.
    """

    layout: ServingLayout
    tokens_per_second: float
    bound: float
    ttft: float
    tpot: float
    memory: float
    stages: tuple[tuple[str, int], ...]
    prompts: float = 0.0
    placed: tuple[int | None, ...] = ()
    experts: tuple[int, ...] = ()
    blocks: range = range(0)

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
        requests = self.requests
        shares = 1 / requests.sum(axis=1)
        shares /= np.dot(shares, layout.groups)
        least = float((shares[:, None] * requests).min(axis=0).sum())
        least = max(least, float(requests.min(axis=0).max()))
        if self.late(least) or self.first.min(axis=0).sum() > load.ttft * (1 + SLACK):
            return 0.0
        return layout.copies * load.generate / least * MS_PER_SECOND

    def solved(self, seconds: float | None, stop: StopEvent | None) -> tuple[ServingPipeline | None, float]:
        """Return the pipeline with the most tokens per second, and the bound on them.

        None if no dealing is found; the bound is then 0 only where it is proven that none fits and is within
        the limits. Where the dealing with the most tokens has the first one too late, the one with the most
        that has not is found (:class:`LimitedChain`).
        """
        try:
            plan = solve(self.graph(), self.devices(), "throughput", time_limit=seconds, stop=stop)
        except InfeasibleError:
            return None, 0.0
        except NoPlanFound:
            return None, self.most()
        found = self._pipeline(plan.placement, plan.value, plan.bound)
        if found.ttft > self.costs.load.ttft * (1 + SLACK):
            placement = self._limited()
            if placement is None:
                return None, 0.0
            value = float(evaluate(self.graph(), self.devices(), placement, "throughput").value)
            found = self._pipeline(placement, value, value)
        if self.late(self._load(found.tokens_per_second)):
            return None, 0.0 if self.late(self._load(found.bound)) else found.bound
        return found, found.bound

    def _limited(self) -> dict[int | str, str] | None:
        """Return the devices of the layers in the dealing with the most tokens whose first is in time."""
        devices, load = self.devices(), self.costs.load
        paid = [
            0.5 if devices.route == "direct" else float(kind.pays_communication) for kind in devices.kinds
        ]
        hops, first = (np.concatenate([[0.0], self.hops(tokens)]) for tokens in self.passing)
        chain = LimitedChain(
            self.requests,
            self.first,
            self.sizes,
            np.array(self.room),
            self.layout.groups,
            np.outer(paid, hops),
            first,
        )
        stages = chain.dealt(load.ttft)
        if stages is None:
            return None
        left = [iter(range(kind.count)) for kind in devices.kinds]
        named = [(devices.kinds[each.kind].device(next(left[each.kind])), each) for each in stages]
        return {str(i): name for name, each in named for i in range(each.first, each.end)}

    @property
    def requests(self) -> Floats:
        """Milliseconds of a request in each layer by kind, shape (kinds, layers)."""
        layout = self.layout
        return np.array([self.costs.request(each, layout.batch, layout.role) for each in self.layers])

    @property
    def first(self) -> Floats:
        """Milliseconds until the first token in each layer by kind, shape (kinds, layers)."""
        return np.array([self.costs.first(each, self.layout.role) for each in self.layers])

    def hops(self, tokens: float) -> Floats:
        """Return the milliseconds in which tokens go from each layer to the next, if another stage has it."""
        load, sent = self.costs.load, np.max([each.sent for each in self.layers], axis=0)[:-1]
        part = tokens / (load.prompt + load.generate)
        return np.asarray(sent * part / self.costs.network * MS_PER_SECOND)

    @property
    def passing(self) -> tuple[float, float]:
        """How many tokens of a request pass the stages, and how many before the first is generated."""
        load, role = self.costs.load, self.layout.role
        after = 0.0 if role == PREFILL else self.costs.steps(role)
        before = 0.0 if role == DECODE else float(load.prompt)
        return before + after, before

    def _load(self, rate: float) -> float:
        """Return the largest load of a stage at a rate of all copies, and the rate at a load."""
        return self.layout.copies * self.costs.load.generate * MS_PER_SECOND / rate

    def _step(self, load: float) -> float:
        """Return the milliseconds from a token of a sequence to its next one; 0 where none is generated."""
        role = self.layout.role
        return 0.0 if role == PREFILL else self.layout.sequences * load / self.costs.steps(role)

    def late(self, load: float) -> bool:
        """Return whether tokens come too late at the largest load of a stage."""
        return self._step(load) > self.costs.load.tpot * (1 + SLACK)

    def graph(self) -> Graph:
        """Return the chain of the layers with the times of a request."""
        load, sizes = self.costs.load, self.sizes
        graphs = {}
        for kind, each, requests in zip(self.layout.kinds, self.layers, self.requests, strict=True):
            sent = each.sent * self.passing[0] / (load.prompt + load.generate)
            rows = zip(requests.tolist(), sizes.tolist(), sent.tolist(), strict=True)
            layers = [
                Layer(str(i), inputs=(str(i - 1),) * (i > 0), forward=time, parameters=size, output=nbytes)
                for i, (time, size, nbytes) in enumerate(rows)
            ]
            graphs[kind.name] = Graph.chain(layers, bandwidth=self.costs.network, training=False)
        return joined(graphs)

    def devices(self, through_host: bool = False) -> Devices:
        """Return the groups of one pipeline as devices, those without memory of their own as CPUs."""
        layout = self.layout
        kinds = [
            DeviceKind(kind.name, count, memory=room, pays_communication=not kind.device.cpu)
            for kind, count, room in zip(layout.kinds, layout.groups, self.room, strict=True)
        ]
        direct = not through_host and all(kind.pays_communication for kind in kinds)
        return Devices(tuple(kinds), route="direct" if direct else "host")

    def _pipeline(self, placement: Mapping[int | str, str], value: float, bound: float) -> ServingPipeline:
        """Return the pipeline of a placement with its largest load and its bound."""
        of_device = {
            kind.device(i): (k, kind)
            for k, kind in enumerate(self.devices(True).kinds)
            for i in range(kind.count)
        }
        names = [placement[str(i)] for i in range(len(self.sizes))]
        kind = np.array([of_device[name][0] for name in names])
        at = np.arange(len(kind))
        used = {name: sum(self.sizes[i] for i in at if names[i] == name) for name in dict.fromkeys(names)}
        full = max(used[name] / self.room[of_device[name][0]] for name in used)
        stages = tuple((of_device[name][1].name, names.count(name)) for name in used)
        rate, most = self._load(value), self._load(bound)
        first = float(self.first[kind, at].sum()) + self._passed(names)
        tpot = self._step(value)
        prompts = sum(self.layers[k].prefill[i] for k, i in zip(kind, at, strict=True))
        part = float(prompts / self.requests[kind, at].sum())
        return ServingPipeline(self.layout, rate, max(rate, most), first, tpot, float(full), stages, part)

    def _passed(self, names: list[str]) -> float:
        """Return the milliseconds in which a prompt passes from stage to stage."""
        hops = self.hops(self.passing[1])
        return float(sum(hops[i] for i in range(len(hops)) if names[i] != names[i + 1]))
