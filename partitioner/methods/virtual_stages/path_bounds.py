"""Bounds on the makespan of pipelines with several stages on a device, of any number of devices.

A search by paths is made for each number of devices and each choice of the stages that do not wait for
others. Where devices are of unlike kinds it first takes the least times of all kinds; while its bound is the
least one, it is divided by the kind of the first device that may be of several.

The stages between all cuts are listed once for devices of some kinds; each choice has a part of the list.
Where light supernodes make cuts many, a search begins with the stages between classes of cuts; once it has
ended, and its bound is the least one, it goes on between smaller classes, and at last between single cuts.

Where all cuts cannot be listed, those of the problem without its lightest supernodes are; these count in the
stages inside which they surely lie.

Without it the bound is lower on 4 of 20 training workloads, by up to 12 % (scripts/ablations.py). With at
most 600 cuts it is 30 % below the makespan of Switch-MoE, which has 1,578; with all 0.05 % (60 s).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache, partial

import numpy as np

from partitioner.methods.dp.reduced import Reduced, left_out
from partitioner.methods.method import Settings
from partitioner.methods.pipeline_bound.paths import PassSpine, spine_of
from partitioner.methods.virtual_stages.bound import EFFORT, ROUNDING, PathBound, TimedChain
from partitioner.methods.virtual_stages.bound_arcs import (
    ArcLists,
    Dealing,
    Kinds,
    StageTimes,
    is_decided,
)
from partitioner.methods.virtual_stages.bound_nets import joint_nets, joint_of, with_sure_transfers
from partitioner.methods.virtual_stages.cut_classes import CutClasses, heavy_supernodes
from partitioner.methods.virtual_stages.cut_costs import MOST_CUTS, CutCosts, StageCuts, cuts_of
from partitioner.methods.virtual_stages.model import DealtStages, VirtualModel, schedule_of
from partitioner.methods.virtual_stages.pass_graph import PassGraph, pass_graph
from partitioner.problem.arrays import Bools, Floats, Ints
from partitioner.problem.pipeline import UNLIMITED, PipelineLimits
from partitioner.problem.problem import Nets
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.graph import Graph

LISTED = 8  # dealings whose stages a family keeps


@dataclass(eq=False)
class ListedStages:
    """The stages of the pipelines of a number of devices, which all searches for these share.

    Parameters
    ----------
    model
        The devices and stages.
    batch
        How many microbatches there are.
    spine
        Shape (n,): the supernodes that make stages wait for one another.
    input_share
        The fraction of a backward pass that its first half takes.
    value
        The makespan of a known pipeline; stages on which a device would be busy for longer are left out.
    """

    model: VirtualModel
    batch: int
    spine: Bools
    input_share: float
    value: float

    def __post_init__(self) -> None:
        model, self.ranks = self.model, self.model.ranks.tolist()
        self.arcs, self.of = cache(self._arcs), lru_cache(LISTED)(self._of)
        self.choices = cache(self._choices)
        self.graph = pass_graph(model.schedule, model.devices, model.chunks, self.batch)
        self.times = StageTimes(model, self.input_share, self.graph.halves)
        self.waits = self.waits_between(model.cuts)

    def waits_between(self, cuts: StageCuts) -> Bools:
        """Return whether a stage between two cuts waits for its neighbours, shape (m, m)."""
        held = cuts.member @ self.spine.astype(np.int64)
        return np.asarray(held[None, :] > held[:, None])

    def _choices(self) -> list[frozenset[int]]:
        """Return the choices of the stages that do not wait; none if they are too many."""
        allowed = self.model.allowed
        return _choices(allowed & self.waits, allowed & ~self.waits, self.model.stages)

    def _of(self, dealing: Dealing) -> ArcLists:
        """Return the stages of all pipelines; from each cut those that do not wait come first."""
        ranks = self.model.ranks
        parts = [self.arcs(dealing[d], s in self.times.inner) for s, d in enumerate(self.ranks)]
        busy = np.where(ranks == np.arange(self.model.devices)[:, None], float(self.batch), 0.0)
        busy_paths = np.repeat(busy[:, :, None], 3, axis=2)
        return ArcLists.joined(parts).up_to(busy_paths, self.value * (1 + ROUNDING))

    def _arcs(self, kinds: Kinds, inner: bool) -> ArcLists:
        """Return a stage on a device of one of some kinds, those that do not wait first from each cut."""
        allowed = np.any([self.model.costs[place].allowed for place in kinds], axis=0)
        allowed &= self.batch * self.times.least(kinds, inner).sum(axis=0) <= self.value * (1 + ROUNDING)
        open_ = np.stack((allowed & ~self.waits, allowed & self.waits), axis=1)
        return self.times.arcs(kinds, inner, open_, len(open_) > EFFORT.exact)


@dataclass(eq=False)
class PathFamily:
    """The searches for a number of devices.

    Parameters
    ----------
    listed
        The stages that there may be.
    settings
        Say when the runs must end.
    classes
        The classes of cuts between which stages lie; None if they lie between single cuts.
    finer
        The searches between smaller classes; None if stages lie between single cuts.
    """

    listed: ListedStages
    settings: Settings
    classes: CutClasses | None = None
    finer: PathFamily | None = None

    def __post_init__(self) -> None:
        self.model, classes, nets = self.listed.model, self.classes, self.listed.model.problem.nets
        self.cuts, self.joint, self.heavy_nets = self.model.cuts, joint_of(self.model), nets
        if classes is not None:
            self.cuts, self.heavy_nets = classes.cuts, classes.nets(nets)
            near, far = classes.clear(nets, 0), classes.clear(nets, self.model.gap)
            self.joint &= np.where(self.model.last_of_vee[:, None], near, far)
        self.waits = self.listed.waits_between(self.cuts)
        # the searches of a dealing share the nets and the stages
        self.nets = cache(partial(joint_nets, self.model, self.cuts, self.heavy_nets, self.joint))
        self.every = lru_cache(LISTED)(self._every)

    def searches(self, bound: float, value: float) -> Iterator[PathBound]:
        """Yield a search for each choice of the stages that do not wait; the first one is that of none."""
        dealing = self._left((tuple(range(len(self.model.costs))),) * self.model.devices)
        for apart in self.listed.choices():
            graph = self.listed.graph.without(self.listed.ranks, apart)
            yield self._search(graph, apart, dealing, min(bound, value), value)

    def parts(self, search: PathBound, value: float) -> list[Search]:
        """Return the searches in place of one that has ended, or whose devices may be of several kinds.

        These are one for each kind of the first of these devices, else one between smaller classes of cuts.
        """
        if not search.decided:
            return [(self, part) for part in self._by_kind(search, value)]
        if self.finer is None:
            return []
        found = self.finer._search(search.graph, search.apart, search.dealing, search.bound, value)
        found.go_on_from(search)
        return [(self.finer, found)]

    def _by_kind(self, search: PathBound, value: float) -> Iterator[PathBound]:
        """Yield a search for each kind of the first device of a search that may be of several."""
        dealing = search.dealing
        first = next(rank for rank, kinds in enumerate(dealing) if len(kinds) > 1)
        for place in dealing[first]:
            part = self._left((*dealing[:first], (place,), *dealing[first + 1 :]))
            if all(part):
                yield self._search(search.graph, search.apart, part, search.bound, value)

    def stages(self, search: PathBound, found: Iterator[TimedChain]) -> Iterator[TimedStages]:
        """Yield the pipelines of a search with the kinds of their devices, once these are decided."""
        kinds = np.array([each[0] for each in search.dealing])
        for length, borders in found:
            cuts = borders if self.classes is None else self.classes.least[borders]
            if search.decided and np.diff(borders).all():  # no stage is of light supernodes alone
                yield length, DealtStages(cuts, kinds)

    def _left(self, dealing: Dealing) -> Dealing:
        """Return the kinds of each device without those of which all devices are taken."""
        costs, count = self.model.costs, self.model.problem.count
        taken = Counter(costs[kinds[0]].kind for kinds in dealing if len(kinds) == 1)
        left = [place for place, each in enumerate(costs) if taken[each.kind] < count[each.kind]]
        found = tuple(
            kinds if len(kinds) == 1 else tuple(place for place in kinds if place in left)
            for kinds in dealing
        )
        return found if found == dealing or not all(found) else self._left(found)

    def _search(
        self, graph: PassGraph, apart: frozenset[int], dealing: Dealing, bound: float, value: float
    ) -> PathBound:
        """Return the search where some stages do not wait, and each device is of one of some kinds."""
        lists, times_of = partial(self._lists, dealing, apart), partial(self.listed.times.of_chain, dealing)
        if self.classes is not None:
            times_of = partial(self._times_between_classes, dealing, apart)
        given = graph, self.model.ranks, dealing, apart, lists, self.nets(dealing), times_of
        narrow = EFFORT.narrow if self.classes is None else EFFORT.roughly
        return PathBound(*given, self.settings, bound, value, narrow)

    def _lists(self, dealing: Dealing, apart: frozenset[int]) -> ArcLists:
        """Return the stages of pipelines in which those `apart` do not wait, and all others do."""
        lists, middle = self.every(dealing)
        idle = np.array([stage in apart for stage in range(lists.stages)])[:, None]
        start, end = np.where(idle, lists.start, middle), np.where(idle, middle, lists.end)
        return lists._replace(start=start, end=end)

    def _every(self, dealing: Dealing) -> tuple[ArcLists, Ints]:
        """Return the stages of all pipelines, with the transfers that they surely pay.

        From each cut those that do not wait come first; where they end is given too, shape (stages, m).
        """
        lists, model = self.listed.of(dealing), self.model
        if self.classes is not None:
            others = joint_of(model) & ~self.joint
            nets = joint_nets(model, model.cuts, model.problem.nets, others, dealing)
            lists = self.classes.joined(with_sure_transfers(lists, nets), self.waits)
        lists = with_sure_transfers(lists, self.nets(dealing))
        middle = lists.start.copy()
        for stage, a in np.ndindex(*middle.shape):
            items = lists.items[lists.start[stage, a] : lists.end[stage, a]]
            middle[stage, a] += len(items) - np.count_nonzero(self.waits[a, items])
        return lists, middle

    def _times_between_classes(self, dealing: Dealing, apart: frozenset[int], borders: Ints) -> Floats:
        """Return no more than the times of the passes of a chain between classes, shape (stages, 3)."""
        lists, stage, ranks = self._lists(dealing, apart), self.cuts.stages(borders), self.model.ranks
        found = lists.times[:, lists.places(borders[None])[0]].T.astype(np.float64)
        for own, nets in self.paid if is_decided(dealing) else ():
            on = own[ranks]
            found[on, :2] += self.listed.times.transfers(dealing, stage, nets)[on]
        return found

    @cached_property
    def paid(self) -> list[tuple[Bools, Nets]]:
        """Some devices, shape (devices,), and the nets that are not in the times of their stages."""
        rows, of = np.unique(self.joint, axis=0, return_inverse=True)
        nets = self.heavy_nets
        return [
            (of.ravel() == i, nets._replace(cost=np.where(row, nets.cost, 0.0))) for i, row in enumerate(rows)
        ]


TimedStages = tuple[float, DealtStages]  # with the length of the longest path
Search = tuple[PathFamily, PathBound]
Opened = tuple[float, Search | None, Iterator[PathBound]]


class PathBounds:
    """Bounds for the pipelines of a graph.

    Parameters
    ----------
    graph
        The graph that the problem is a contraction of.
    problem
        A problem with a schedule of several stages on a device, whose nets distinguish the passes.
    kinds
        The numbers of the devices' kinds.
    input_share
        The fraction of a backward pass that its first half takes.
    settings
        Say when the runs must end.
    """

    def __init__(
        self,
        graph: Graph,
        problem: PipelineProblem,
        kinds: Sequence[int],
        input_share: float,
        settings: Settings,
    ) -> None:
        self.problem, self.settings, self.input_share = problem, settings, input_share
        self.fewer: Reduced | None = None
        self.spine = spine_of(graph, problem)
        self.cuts = cuts_of(problem, settings, _most_cuts(problem, settings))
        if self.spine is not None and not self.cuts.complete:
            self._leave_out(self.spine)
        self.costs = [CutCosts(self.problem, kind, self.cuts, fewer=self.fewer) for kind in kinds]
        self.bound = 0.0

    def _leave_out(self, spine: PassSpine) -> None:
        """Leave out light supernodes until all cuts of the others can be listed; else change nothing."""
        limits = PipelineLimits(nodes=(0, UNLIMITED))  # a stage may hold light supernodes alone
        free = replace(self.problem, pipeline=replace(self.problem.pipeline, limits=limits))
        for share in EFFORT.left_out:
            rest, fewer = left_out(free, share, spine.on, shared=True)
            cuts = cuts_of(rest, self.settings, EFFORT.cuts_left)
            if cuts.complete:
                self.problem, self.fewer, self.spine = rest, fewer, spine.of(fewer.kept)
                self.cuts = replace(cuts, loose=True)
                return

    def stage(self, borders: Ints) -> Ints:
        """Return the stage of every supernode, shape (n,), by the cuts at the borders of stages."""
        stage = self.cuts.stages(borders)
        return stage if self.fewer is None else self.fewer.stage_of(stage)

    def narrow(self, known: Mapping[int, float], value: float) -> Iterator[TimedStages]:
        """Raise known lower bounds, by the number of devices in use, towards a makespan.

        A bound holds for pipelines whose stages all wait for one another, and for those in which some do not:
        each choice of these stages has a bound of its own, and so have the kinds of devices. The least of all
        is :attr:`bound`. It stays as it is where nothing is known: cuts, passes or choices are too many, or
        the backward pass has no single direction.

        Yields
        ------
        TimedStages
            A pipeline, which may be a good one.
        """
        counts = sorted((devices for devices, bound in known.items() if bound < value), key=known.__getitem__)
        cuts, memory = len(self.cuts), self.settings.memory_budget
        together = max(1, 4 * memory // (_bytes_of(cuts) * _stages(self.problem) * cuts**2))
        self.bound, found, settings = min(known.values()), value, self.settings
        for first in reversed(range(0, len(counts), together)):  # those of the highest bounds before others
            group = {devices: known[devices] for devices in counts[first : first + together]}
            self.settings = settings.for_share(1 / (1 + first / together))
            low = yield from self._narrowed(group, value)
            found = min(found, low)
        self.bound = max(self.bound, found)

    def _narrowed(self, known: Mapping[int, float], value: float) -> Generator[TimedStages, None, float]:
        """Return the least of some bounds after always raising the least one; yield pipelines on the way."""
        searches, least = list[Search](), value
        for bound, first, further in (yield from self._opened(known, value)):
            begun = [] if first is None else (yield from self._begun(first, further, value))
            least = min(least, value if begun else bound)
            searches += begun
            value = min([value, *(search.found for own, search in begun if own.finer is None)])
        return (yield from self._halved(searches, least, value))

    def _opened(self, known: Mapping[int, float], value: float) -> Generator[TimedStages, None, list[Opened]]:
        """Return for each number of devices its bound, the search where all stages wait, and the others.

        There is none where nothing is known of the devices. The bounds of the searches are those of prices.
        """
        found = list[Opened]()
        for devices, bound in known.items():
            family = self._family(devices, value)
            further = iter(()) if family is None else family.searches(bound, value)
            first = next(further, None)
            if family is not None and first is not None:
                yield from family.stages(first, first.begin(value))
            found.append((bound, None if family is None or first is None else (family, first), further))
        return found

    def _halved(
        self, searches: list[Search], least: float, value: float
    ) -> Generator[TimedStages, None, float]:
        """Return the least bound of the searches after always raising the least one, up to `least`."""
        for _ in range(EFFORT.halved):
            if not searches:
                break
            family, search = min(searches, key=lambda each: each[1].bound)
            if self.settings.expired or search.bound >= least:
                break
            far = sum(each.walked for _, each in searches) > EFFORT.walked
            ended = search.closed and (family.finer is not None or far or not search.go_on(value))
            if ended or not search.decided:
                parts = family.parts(search, value)
                if not parts:
                    break
                searches = [*(each for each in searches if each[1] is not search), *parts]
                for own, part in parts:
                    yield from own.stages(part, part.begin(value, refuting=search.decided))
                continue
            search.high = min(search.high, value)
            yield from family.stages(search, search.halve())
            value = value if family.finer else min(value, search.found)
        return min([least, *(search.bound for _, search in searches)])

    def _begun(
        self, first: Search, further: Iterator[PathBound], value: float
    ) -> Generator[TimedStages, None, list[Search]]:
        """Return the searches for a number of devices after their first steps; none if some had no time.

        The first of them, in which all stages wait, goes on as far as short walks do.
        """
        family, ahead = first
        yield from self._ahead(family, ahead)
        value, searches = min(value, ahead.found), [first]
        for search in further:
            if self.settings.expired:
                return []
            yield from family.stages(search, search.begin(value * (1 - EFFORT.below), refuting=True))
            searches.append((family, search))
        left = sum(search.bound < value for _, search in searches)
        for _, search in searches:
            search.share_steps(left)
        return searches

    def _ahead(self, family: PathFamily, search: PathBound) -> Iterator[TimedStages]:
        """Narrow a search before all others as far as short walks do; yield pipelines on the way."""
        far = EFFORT.below * search.high
        while search.decided and search.high - search.bound > far and search.walked < EFFORT.ahead:
            if self.settings.expired:
                break
            yield from family.stages(search, search.halve())

    def _family(self, devices: int, value: float) -> PathFamily | None:
        """Return the searches for a number of devices, between the largest classes of cuts to begin with.

        It is None if nothing is known of the devices.
        """
        schedule, chunks = schedule_of(self.problem)
        batch, spine = self.problem.pipeline.microbatches or 1, self.spine
        many = 3 * batch * devices * chunks > EFFORT.passes
        if many or not self.cuts.complete or spine is None or not spine.trains or not spine.returns:
            return None
        model = VirtualModel(self.costs, schedule, devices, chunks)
        listed = ListedStages(model, batch, spine.on, self.input_share, value)
        found = PathFamily(listed, self.settings)
        for classes in self.classes:
            found = PathFamily(listed, self.settings, classes, found)
        return found

    @cached_property
    def classes(self) -> list[CutClasses]:
        """The classes of cuts, the smallest ones first; none for unlike kinds, with some for each dealing.

        GNMT on two fast and two slow devices (20 s): 3.9 % with classes, 1.7 % without.
        """
        if self.spine is None or len(self.costs) > 1:
            return []
        found, count = list[CutClasses](), len(self.cuts)
        for share in sorted(EFFORT.light):
            classes = CutClasses(self.cuts, heavy_supernodes(self.problem, self.spine.on, share))
            if len(classes) <= EFFORT.fewer * count:
                found.append(classes)
                count = len(classes)
        return found


def _most_cuts(problem: PipelineProblem, settings: Settings) -> int:
    """Return between how many cuts all stages can be listed, in a part of the time and in the memory."""
    seconds = np.inf if settings.deterministic else max(settings.clock.left, 0.0)
    in_time = EFFORT.listing * seconds / (EFFORT.second * _stages(problem))
    each = settings.memory_budget / _stages(problem)
    exact, rough = (each / _bytes_of(cuts) for cuts in (EFFORT.exact, EFFORT.exact + 1))
    pairs = min(EFFORT.cuts**2, in_time, exact if exact < EFFORT.exact**2 else rough)
    return max(MOST_CUTS, int(pairs**0.5))


def _bytes_of(cuts: int) -> int:
    """Return the memory of a stage between some number of cuts."""
    return EFFORT.memory // (1 + (cuts > EFFORT.exact))


def _stages(problem: PipelineProblem) -> int:
    """Return how many stages there are on all devices."""
    return schedule_of(problem)[1] * int(problem.count.sum())


def _choices(waiting: Bools, idle: Bools, stages: int) -> list[frozenset[int]]:
    """Return the sets of stages that can be idle ones while all others are waiting ones, the empty set first.

    There is none if they are too many. `waiting` and `idle` have shape (m, m).
    """
    found: list[tuple[frozenset[int], Bools]] = [(frozenset(), np.eye(len(idle), dtype=bool)[0])]
    for stage in range(stages):
        steps = [(apart, _after(at, waiting)) for apart, at in found]
        steps += [(apart | {stage}, _after(at, idle)) for apart, at in found]
        found = [(apart, at) for apart, at in steps if at.any()]
        if len(found) > EFFORT.choices:
            return []
    possible = [apart for apart, at in found if at[-1]]
    return sorted(possible, key=lambda apart: (len(apart), *sorted(apart)))


def _after(at: Bools, arcs: Bools) -> Bools:
    """Return the cuts, shape (m,), at which stages end that begin at some cuts."""
    return np.asarray(arcs[at].any(axis=0))
