"""Bounds on the makespan of pipelines with several stages on a device, for each number of devices."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping

import numpy as np

from partitioner.methods.bounds.fill_drain.spine import spine_of
from partitioner.methods.bounds.several_stages.arcs import joint_nets, stage_arcs
from partitioner.methods.bounds.several_stages.search import PathBound
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.cuts import cuts_of
from partitioner.methods.virtual_stages.model import CutCosts, VirtualModel, schedule_of
from partitioner.methods.virtual_stages.pass_graph import pass_graph
from partitioner.problem.arrays import Bools, Ints
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph

MOST_PASSES = 150_000
MOST_CHOICES = 1000  # of the stages that do not wait
MOST_CELLS = 4_000_000  # pairs of cuts for all numbers of devices that are looked at together
MOST_WALKED = 2_000_000_000  # steps, after which no walk that was given up is done again
MOST_HALVED = 2000  # distances of a bound and the makespan


class PathBounds:
    """Bounds for the pipelines of a graph.

    Parameters
    ----------
    graph
        The graph that the problem is a contraction of.
    problem
        A problem with a schedule of several stages on a device, whose nets distinguish the passes.
    kind
        The number of the devices' kind.
    input_share
        The fraction of a backward pass that its first half takes.
    settings
        Say when the runs must end.
    """

    def __init__(
        self, graph: Graph, problem: PipelineProblem, kind: int, input_share: float, settings: Settings
    ) -> None:
        self.problem, self.settings, self.input_share = problem, settings, input_share
        self.costs = CutCosts(problem, kind, cuts_of(problem, settings))
        self.spine = spine_of(graph, problem)
        self.bound = 0.0

    def stage(self, borders: Ints) -> Ints:
        """Return the stage of every supernode, shape (n,), by the cuts at the borders of stages."""
        inside = self.costs.cuts.member[borders[1:-1]]
        return np.asarray((~inside).sum(axis=0))

    def narrow(self, known: Mapping[int, float], value: float) -> Iterator[Ints]:
        """Raise known lower bounds, by the number of devices in use, towards a makespan.

        A bound holds for pipelines whose stages all wait for one another, and for those in which some do not:
        each choice of these stages has a bound of its own. The least of all is :attr:`bound`. It stays as it
        is where nothing is known: cuts, passes or choices are too many, or the backward pass has no single
        direction.

        Yields
        ------
        array of int
            Shape (stages + 1,): the cuts of a pipeline, which may be a good one.
        """
        counts = [devices for devices, bound in known.items() if bound < value]
        together = max(1, MOST_CELLS // len(self.costs.cuts) ** 2)
        self.bound, found = min(known.values()), value
        for first in range(0, len(counts), together):
            group = {devices: known[devices] for devices in counts[first : first + together]}
            low = yield from self._narrowed(group, value)
            found = min(found, low)
        self.bound = max(self.bound, found)

    def _narrowed(self, known: Mapping[int, float], value: float) -> Generator[Ints, None, float]:
        """Return the least of some bounds after always raising the least one; yield pipelines on the way."""
        limit, searches, least = value, list[PathBound](), value
        for devices, bound in known.items():
            before = len(searches)
            for search in self._searches(devices, bound, value):
                if self.settings.expired:
                    return min(known.values())
                yield from search.begin(limit)
                limit = min(limit, search.bound)
                searches.append(search)
            if before == len(searches):
                least = min(least, bound)
        for _ in range(MOST_HALVED if searches else 0):
            search = min(searches, key=lambda each: each.bound)
            if self.settings.expired or search.bound >= least:
                break
            far = sum(each.walked for each in searches) > MOST_WALKED
            if search.closed and (far or not search.go_on(value)):
                break
            yield from search.halve()
        return min([least, *(search.bound for search in searches)])

    def _searches(self, devices: int, bound: float, value: float) -> Iterator[PathBound]:
        """Yield a search for each choice of the stages that do not wait; the first one is that of none."""
        schedule, chunks = schedule_of(self.problem)
        batch, spine, costs = self.problem.pipeline.microbatches or 1, self.spine, self.costs
        many = 3 * batch * devices * chunks > MOST_PASSES
        if many or not costs.cuts.complete or spine is None or not spine.trains or not spine.returns:
            return
        model = VirtualModel(costs, schedule, devices, chunks)
        arcs = stage_arcs(model, self.input_share, pass_graph(schedule, devices, chunks, batch).halves)
        nets, bound = joint_nets(model), min(bound, value)
        held = costs.cuts.member @ spine.on.astype(np.int64)
        waiting = costs.allowed & (held[None, :] > held[:, None])
        idle = costs.allowed & ~waiting
        for apart in _choices(waiting, idle, model.stages):
            graph = pass_graph(schedule, devices, chunks, batch, apart)
            shared = waiting, idle, apart, nets, self.settings
            yield PathBound(graph, arcs, model.ranks, *shared, bound, value)


def _choices(waiting: Bools, idle: Bools, stages: int) -> list[frozenset[int]]:
    """Return the sets of stages that can be idle ones while all others are waiting ones, the empty set first.

    There is none if they are too many. `waiting` and `idle` have shape (m, m).
    """
    found: list[tuple[frozenset[int], Bools]] = [(frozenset(), np.eye(len(idle), dtype=bool)[0])]
    for stage in range(stages):
        steps = [(apart, _after(at, waiting)) for apart, at in found]
        steps += [(apart | {stage}, _after(at, idle)) for apart, at in found]
        found = [(apart, at) for apart, at in steps if at.any()]
        if len(found) > MOST_CHOICES:
            return []
    possible = [apart for apart, at in found if at[-1]]
    return sorted(possible, key=lambda apart: (len(apart), *sorted(apart)))


def _after(at: Bools, arcs: Bools) -> Bools:
    """Return the cuts, shape (m,), at which stages end that begin at some cuts."""
    return np.asarray(arcs[at].any(axis=0))
