"""An exhaustive oracle of stages with alternatives: every chain of stages, degree, number of copies, and way.

It reads the definitions off the user's graph, node by node and tensor by tensor, and shares no code with the
package's methods or its evaluator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from partitioner import Alternative, Graph

Way = Alternative | None
Group = frozenset[int]


@dataclass(frozen=True)
class Case:
    """A graph on equal devices, and what is asked for; times are those of the only kind."""

    graph: Graph
    devices: int
    memory: float
    bandwidth: float | None = None
    copies: int = 1
    schedule: str | None = None
    microbatches: int | None = None
    piper: bool = False
    batch: bool = (
        False  # the time of a batch: all loads, and the largest one once more for each further sample
    )
    equal: bool = False  # whether all stages have one degree and one number of copies


def best_value(case: Case) -> float | None:
    """The least largest load, or time of a batch, of all plans; None if there is none."""
    return Exhaustive(case).best()


class Exhaustive:
    """All plans of a case."""

    def __init__(self, case: Case) -> None:
        self.case, graph = case, case.graph
        color = graph.color.tolist()
        labels = [color[i] if color[i] >= 0 else -1 - i for i in range(len(graph))]
        self.classes = [[i for i in range(len(graph)) if labels[i] == c] for c in dict.fromkeys(labels)]
        self.of = {i: c for c, nodes in enumerate(self.classes) for i in nodes}
        self.ways: list[list[dict[int, Way]]] = [self._ways(nodes) for nodes in self.classes]
        self.edges = [(u, v, float(c)) for (u, v), c in zip(graph.edges.tolist(), graph.cost, strict=True)]
        self.parts = graph.parts.any() or any(any(w.parts) for ws in graph.alternatives.values() for w in ws)
        ways = [way for choices in self.ways for choice in choices for way in choice.values()]
        self.degrees = sorted({1 if way is None else way.degree for way in ways})
        self.load = cache(self._load)

    def _ways(self, nodes: list[int]) -> list[dict[int, Way]]:
        graph = self.case.graph
        own: list[dict[int, Way]] = [dict.fromkeys(nodes)]
        for way in graph.alternatives.get(graph.ids[nodes[0]], ()):
            own.append(
                {i: next(w for w in graph.alternatives[graph.ids[i]] if w.name == way.name) for i in nodes}
            )
        return own

    def best(self) -> float | None:
        least = math.inf
        for stages in self._chains():
            if self.case.equal:
                least = min([least, *self._of_one_shape(stages)])
                continue
            if self.case.batch:
                least = min([least, *self._batches(stages, len(stages) - 1, self.case.devices, 0, 0.0, 0.0)])
                continue
            least = min(least, self._over_shapes(stages, len(stages) - 1, self.case.devices, 0, least))
        return None if least == math.inf else least

    def _chains(self) -> Iterator[list[Group]]:
        """All lists of stages such that no forward edge and no mirrored backward edge leads back."""
        count, backward = len(self.classes), self.case.graph.backward
        arcs = set()
        for u, v, _ in self.edges:
            if not backward[v]:
                arcs.add((self.of[u], self.of[v]))
        for m in range(1, count + 1):
            for place in itertools.product(range(m), repeat=count):
                if len(set(place)) == m and all(place[a] <= place[b] for a, b in arcs):
                    yield [frozenset(c for c in range(count) if place[c] == s) for s in range(m)]

    def _of_one_shape(self, stages: list[Group]) -> Iterator[float]:
        """The values of the stages where all have one degree and one number of copies."""
        case, count = self.case, len(stages)
        for degree, copies in itertools.product(self.degrees, range(1, case.copies + 1)):
            if count * degree * copies > case.devices:
                continue
            if case.piper and (case.microbatches % copies or count * copies > case.microbatches):  # type: ignore[operator]
                continue
            loads = [
                self.load(stage, degree, copies, (count - 1 - i) * copies) for i, stage in enumerate(stages)
            ]
            more = (case.microbatches - 1) * max(loads) if case.batch else 0.0  # type: ignore[operator]
            yield sum(loads) + more if case.batch else max(loads)

    def _over_shapes(self, stages: list[Group], last: int, devices: int, behind: int, least: float) -> float:
        """The least largest load of the stages up to `last`, with that many copies behind them."""
        if last < 0:
            return 0.0
        case, best = self.case, math.inf
        for degree in self.degrees:
            for copies in range(1, min(case.copies, devices // degree) + 1):
                if case.piper and (
                    case.microbatches % copies or behind + copies > case.microbatches  # type: ignore[operator]
                ):
                    continue
                load = self.load(stages[last], degree, copies, behind)
                if load >= min(best, least):
                    continue
                rest = self._over_shapes(
                    stages, last - 1, devices - degree * copies, behind + copies, min(best, least)
                )
                best = min(best, max(load, rest))
        return best

    def _batches(
        self, stages: list[Group], last: int, devices: int, behind: int, total: float, largest: float
    ) -> Iterator[float]:
        """The times of a batch of all shapes of the stages up to `last`, given the sum of the later loads."""
        if last < 0:
            yield total + (self.case.microbatches - 1) * largest  # type: ignore[operator]
            return
        for degree, copies in itertools.product(self.degrees, range(1, self.case.copies + 1)):
            if degree * copies <= devices:
                load = self.load(stages[last], degree, copies, behind)
                if load < math.inf:
                    left, later = devices - degree * copies, behind + copies
                    yield from self._batches(stages, last - 1, left, later, total + load, max(largest, load))

    def _load(self, stage: Group, degree: int, copies: int, behind: int) -> float:
        """The least load of a stage over all ways that fit in the memory."""
        best = math.inf
        options = [
            [way for way in self.ways[c] if all(1 if w is None else w.degree == degree for w in way.values())
             and (degree == 1 or None not in way.values())]
            for c in sorted(stage)
        ]  # fmt: skip
        inside = {i for c in stage for i in self.classes[c]}
        cut = self._cut(inside)
        for chosen in itertools.product(*options):
            of = {i: w for way in chosen for i, w in way.items()}
            if self._memory(of, copies, behind) <= self.case.memory:
                best = min(best, self._time(of, inside, cut, copies))
        return best

    def _cut(self, inside: set[int]) -> float:
        """The cost of the tensors, or in Piper's model of the edges, that lead into and out of a stage."""
        total = 0.0
        for u in range(len(self.case.graph)):
            out = [(v, c) for a, v, c in self.edges if a == u]
            one = not self.case.piper and len({c for _, c in out}) == 1
            tensors = [out] if one else [[edge] for edge in out]
            for tensor in tensors:
                here = [v in inside for v, _ in tensor]
                crossing = any(here) if u not in inside else not all(here)
                total += tensor[0][1] if crossing and tensor else 0.0
        return total

    def _time(self, of: dict[int, Way], inside: set[int], cut: float, copies: int) -> float:
        case, graph = self.case, self.case.graph
        (kind,) = graph.kinds
        busy, weights = cut, 0.0
        for i, way in of.items():
            busy += graph.time[0, i] if way is None else way.times[kind]
            parts = graph.parts[:, i].tolist() if way is None else way.parts
            size = graph.size[i] if way is None else way.size
            weights += parts[0] if self.parts else size
        for u, v, _ in self.edges:
            if u in inside and v not in inside and of[u] is not None:
                busy += of[u].outputs.get(graph.ids[v], 0.0)  # type: ignore[union-attr]
            if v in inside and u not in inside and of[v] is not None:
                busy += of[v].inputs.get(graph.ids[u], 0.0)  # type: ignore[union-attr]
        exchange = 0.0 if case.bandwidth is None else weights / case.bandwidth
        factor = 1.0
        if case.piper or (
            case.microbatches and case.schedule != "1f1b_async"
        ):  # once a batch, there and back
            factor = (4 if case.piper else 2) / case.microbatches  # type: ignore[operator]
        return float(busy / copies + factor * exchange * (copies - 1) / copies)

    def _memory(self, of: dict[int, Way], copies: int, behind: int) -> float:
        case, graph = self.case, self.case.graph
        samples, versions = held(case.schedule, behind, copies, case.microbatches)
        total, workspace = 0.0, 0.0
        for i, way in of.items():
            given: Any = graph.parts[:, i].tolist() if way is None else way.parts
            size = graph.size[i] if way is None else way.size
            parameters, gradients, optimizer, activations, space = given
            total += size + gradients + optimizer + versions * parameters + samples * activations
            workspace = max(workspace, space)
            total += space if case.schedule is None else 0.0
        return float(total + (0.0 if case.schedule is None else workspace))


def held(schedule: str | None, behind: int, copies: int, microbatches: int | None) -> tuple[int, int]:
    """The samples and versions of the weights that a copy holds."""
    later = math.ceil(behind / copies)
    if schedule in (None, "inference"):
        return 1, 1
    if schedule == "1f1b_async":
        return later + 1, later + 1
    share = math.inf if microbatches is None else math.ceil(microbatches / copies)
    return int(share if schedule == "gpipe" else min(later + 1, share)), 1
