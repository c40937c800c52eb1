"""An exhaustive oracle of several stages on a device whose nodes run in several ways.

Every chain on every number of ranks, every kind and degree of each rank, and every way of every colour class.
It shares no code with the package's methods or its evaluator; chains and tables of passes are those of
:mod:`tests.oracle_virtual_stages`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import product

import numpy as np

from partitioner import Alternative
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.oracle_pipelines import atoms
from tests.oracle_placements import tensors_of
from tests.oracle_virtual_stages import chains, ranks_of
from tests.random_virtual_stages import VirtualCase

Sort = tuple[int, int]  # the kind of a rank, and how many of its devices run a stage together
Stages = tuple[frozenset[int], ...]


def best_virtual_ways(case: VirtualCase) -> float | None:
    """The least largest load of all plans; None if there is none."""
    return Exhaustive(case).best()


class Exhaustive:
    """All plans of a case."""

    def __init__(self, case: VirtualCase) -> None:
        self.case, self.graph, self.kinds = case, case.graph, case.devices.kinds
        self.known: dict[tuple[Stages, int, int, Sort], float] = {}
        self.tensors = list(tensors_of(self.graph))

    def best(self) -> float | None:
        """The least largest load; None if there is no plan."""
        case, least = self.case, np.inf
        total = sum(kind.count for kind in self.kinds)
        for count in range(1, total + 1):
            stages = count * case.chunks
            wrong = case.constraints.stages not in (None, stages)
            if wrong or VIRTUAL[case.schedule].rule(count, case.microbatches):
                continue
            ranks = ranks_of(case.schedule, count, case.chunks).tolist()
            dealt = list(self._dealings(count))
            for stage in chains(self.graph, atoms(self.graph, case.constraints), stages, case.constraints):
                least = min(least, self._over_dealings(stage.tolist(), ranks, count, dealt, least))
        return None if least == np.inf else least

    @cached_property
    def sorts(self) -> list[Sort]:
        """The sorts of ranks that there may be."""
        ways = self.graph.alternatives.values()
        degrees = {1} | {way.degree for each in ways for way in each}
        return [(k, d) for k, kind in enumerate(self.kinds) for d in degrees if d <= kind.count]

    def _dealings(self, count: int) -> Iterator[tuple[Sort, ...]]:
        """Every sort of every rank, as far as there are devices."""
        total = sum(kind.count for kind in self.kinds)
        for dealt in product(self.sorts, repeat=count):
            used = [sum(d for k, d in dealt if k == kind) for kind in range(len(self.kinds))]
            enough = all(u <= kind.count for u, kind in zip(used, self.kinds, strict=True))
            if enough and (sum(used) == total or not self.case.constraints.use_all_devices):
                yield dealt

    def _over_dealings(
        self, stage: list[int], ranks: list[int], count: int, dealt: list[tuple[Sort, ...]], least: float
    ) -> float:
        """The least largest load of a chain over all dealings, if it is below a limit."""
        of = [
            tuple(
                frozenset(i for i, at in enumerate(stage) if at == s)
                for s, rank in enumerate(ranks)
                if rank == own
            )
            for own in range(count)
        ]
        table = [{sort: self._load(each, r, count, sort) for sort in self.sorts} for r, each in enumerate(of)]
        for sorts in dealt:
            least = min(least, max(table[r][sort] for r, sort in enumerate(sorts)))
        return least

    def _load(self, stages: Stages, rank: int, count: int, sort: Sort) -> float:
        """The least load of a rank over all ways that fit its memory; infinity if there are none."""
        key = stages, rank, count, sort
        if key not in self.known:
            self.known[key] = self._least(*key)
        return self.known[key]

    def _least(self, stages: Stages, rank: int, count: int, sort: Sort) -> float:
        graph, (k, degree) = self.graph, sort
        kind, inside = self.kinds[k], frozenset[int]().union(*stages)
        row = graph.kinds.index(kind.times or kind.name)
        if not graph.allowed[row, sorted(inside)].all():
            return np.inf
        fixed = sum(cost for maker, users, cost in self.tensors if self._crosses(maker, users, inside))
        best, memory = np.inf, np.inf if kind.memory is None else kind.memory * (1 + 1e-9)
        for ways in self._chosen(inside, degree):
            times = [
                graph.time[row, i] if way is None else way.times[graph.kinds[row]] for i, way in ways.items()
            ]
            busy = kind.time_factor * sum(times) + kind.transfer_factor * (fixed + self._extra(ways, inside))
            if busy < best and self._memory(stages, ways, rank, count) <= memory:
                best = busy
        return best

    def _crosses(self, maker: int, users: list[int], inside: frozenset[int]) -> bool:
        """Whether a tensor is sent or fetched by the device that has some nodes."""
        return (
            any(user not in inside for user in users) if maker in inside else any(u in inside for u in users)
        )

    def _chosen(self, inside: frozenset[int], degree: int) -> Iterator[dict[int, Alternative | None]]:
        """Every choice of the ways of some nodes, the same for the nodes of a class."""
        graph, classes = self.graph, dict[int, list[int]]()
        for i in sorted(inside):
            classes.setdefault(int(graph.color[i]) if graph.color[i] >= 0 else -1 - i, []).append(i)
        options = []
        for nodes in classes.values():
            names = [
                way.name for way in graph.alternatives.get(graph.ids[nodes[0]], ()) if way.degree == degree
            ]
            options.append([self._named(nodes, name) for name in names])
            if degree == 1:
                options[-1].append(dict.fromkeys(nodes))
        for chosen in product(*options):
            yield {node: way for each in chosen for node, way in each.items()}

    def _named(self, nodes: list[int], name: str) -> dict[int, Alternative | None]:
        ways, ids = self.graph.alternatives, self.graph.ids
        return {i: next(way for way in ways[ids[i]] if way.name == name) for i in nodes}

    def _extra(self, ways: dict[int, Alternative | None], inside: frozenset[int]) -> float:
        """What the ways pay in addition for edges to and from other devices."""
        total, ids = 0.0, self.graph.ids
        for u, v in self.graph.edges.tolist():
            maker, user = ways.get(u), ways.get(v)
            if u in inside and v not in inside and maker is not None:
                total += maker.outputs.get(ids[v], 0.0)
            if v in inside and u not in inside and user is not None:
                total += user.inputs.get(ids[u], 0.0)
        return total

    def _memory(self, stages: Stages, ways: dict[int, Alternative | None], rank: int, count: int) -> float:
        """The most that a rank holds at once."""
        case, graph = self.case, self.graph
        parts = {i: graph.parts[:, i].tolist() if way is None else way.parts for i, way in ways.items()}
        once = sum(sum(each[:3]) for each in parts.values())
        once += sum(graph.size[i] if way is None else way.size for i, way in ways.items())
        kept = [sum(parts[i][3] for i in stage) for stage in stages]
        row = VIRTUAL[case.schedule].row(rank, count, case.chunks, case.microbatches)
        last = max(row.direction.tolist())
        held, most = [0] * len(stages), 0.0
        for chunk, direction in zip(row.chunk.tolist(), row.direction.tolist(), strict=True):
            held[chunk] += direction == 0
            most = max(most, sum(h * k for h, k in zip(held, kept, strict=True)))
            held[chunk] -= direction == last
        return float(once + most + max(each[4] for each in parts.values()))
