"""The search for the least makespan that no weighted path through the schedule refutes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from partitioner.methods.bounds.several_stages.arcs import StageArcs
from partitioner.methods.bounds.several_stages.master import PathMaster
from partitioner.methods.bounds.several_stages.pairs import MOST_CUTS, MOST_STEPS, JointNets, PairWalk
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.pass_graph import PassGraph
from partitioner.methods.virtual_stages.path_kernel import count_passes, path_ends
from partitioner.problem.arrays import Bools, Floats, Ints

NARROW = 5e-4  # of the value: the distance of bound and value at which the search ends
CLOSE = 1e-4  # of the value: the distance at which prices count as the best ones
MOST_PRICES, MOST_WALKS = 120, 30  # weighted paths that are tried for a set of stages
MOST_ROUNDS = 6  # times that stages are closed at one makespan
LITTLE = 0.98  # closing ends if more than this fraction of the stages is left
MOST_PATHS, MOST_KNOWN = 400, 400
ASIDE = 1e-3  # length of the passes of other devices in the path along a device
FURTHER, PATIENCE = 8, 64  # factors for the steps of walks: each time that one is given up, and at most
ROUNDING = 1e-9


@dataclass(eq=False)
class PathBound:
    """A lower bound on the makespan of the pipelines on some number of devices, and good ones.

    Parameters
    ----------
    graph
        The passes of a batch.
    arcs
        The times of stages.
    ranks
        Shape (stages,): the device of every stage.
    waiting, idle
        Shape (m, m): which stages there may be between two cuts, that wait for others and that do not.
    apart
        The numbers of the stages that do not.
    nets
        For every device the nets that are not in the times of its stages.
    settings
        Say when the run must end.
    bound, high
        A lower bound on the makespan of these pipelines, and up to where it may rise.
    most_steps
        The steps of walks with a limit, after which it is given up.
    """

    graph: PassGraph
    arcs: StageArcs
    ranks: Ints
    waiting: Bools
    idle: Bools
    apart: frozenset[int]
    nets: list[JointNets]
    settings: Settings
    bound: float
    high: float
    most_steps: int = MOST_STEPS
    paths: list[Floats] = field(default_factory=list)
    known: dict[bytes, Ints] = field(default_factory=dict)
    best: Floats | None = None
    given_up: bool = False
    walked: int = 0

    def __post_init__(self) -> None:
        self.rows = self._along_devices()
        self.paths += self.rows

    @property
    def open_(self) -> Bools:
        """Shape (stages, m, m): which stages there may be, by their number and two cuts."""
        numbers = range(self.arcs.stages)
        return np.stack([self.idle if number in self.apart else self.waiting for number in numbers])

    @property
    def closed(self) -> bool:
        """Whether the search has ended."""
        return self.high - self.bound <= NARROW * self.high

    def go_on(self, high: float) -> bool:
        """Open the search up to a makespan again, for longer walks; return whether there may be any."""
        if not self.given_up or self.most_steps >= MOST_STEPS * PATIENCE:
            return False
        self.high, self.given_up, self.most_steps = high, False, self.most_steps * FURTHER
        return True

    def begin(self, limit: float) -> Iterator[Ints]:
        """Raise the bound to the best prices of paths, or to a limit; yield pipelines as :meth:`halve`."""
        low = yield from self._priced(self.open_, limit, None)
        self.bound = max(self.bound, min(low, limit))

    def halve(self) -> Iterator[Ints]:
        """Halve the distance between the bound and the makespan below which it is sought.

        Yields
        ------
        array of int
            Shape (stages + 1,): the cuts of a pipeline, which may be a good one.
        """
        middle = (self.bound + self.high) / 2
        if (yield from self._refuted(middle)):
            self.bound = middle
        elif not self.settings.expired:
            self.high = middle

    def _refuted(self, limit: float) -> Generator[Ints, None, bool]:
        """Return whether no pipeline has a makespan of at most `limit`; yield pipelines found on the way."""
        open_, most = self.open_, limit * (1 + ROUNDING)
        for _ in range(MOST_ROUNDS):
            count = int(open_.sum())
            for path in self.rows if self.best is None else [*self.rows, self.best]:
                if self.settings.expired:
                    return False
                open_ = open_ & (self.arcs.through(path, open_) <= most)
            low = yield from self._priced(open_, limit, None, True)
            if low > most:
                return True
            if open_.sum() > LITTLE * count:
                break
        if self.arcs.stages != 2 * len(self.rows) or len(open_[0]) > MOST_CUTS:
            return False
        walk = PairWalk(
            *(self.arcs, bool(self.ranks[-1] == 0), self.rows, open_, self.nets, most, self.settings),
            most_steps=self.most_steps,
        )
        found = yield from self._priced(open_, limit, walk, True)
        self.given_up |= walk.steps > self.most_steps
        self.walked += walk.steps
        return found > most

    def _priced(
        self, open_: Bools, limit: float, walk: PairWalk | None, refuting: bool = False
    ) -> Generator[Ints, None, float]:
        """Return a lower bound for pipelines of open stages; it is raised until it exceeds a limit.

        With a walk, only pipelines count of which no device exceeds its limit. If the limit is to be refuted,
        the bound is not raised where that cannot succeed.
        """
        master, low, high = PathMaster(self.paths[-MOST_PATHS:]), -np.inf, np.inf
        used = set[bytes]() if walk else self._known_of(open_, master)
        for _ in range(MOST_WALKS if walk else MOST_PRICES):
            found = master.solve() if used else None
            first = np.mean(self.paths, axis=0) if self.best is None else self.best
            path = first if found is None else found[0]
            answer = walk.least(path) if walk else self.arcs.least(path, open_)
            if answer is None or self.settings.expired:
                break
            value, best = answer
            if value > low:
                low, self.best = value, path
            if best is None or low > limit * (1 + ROUNDING):
                break
            if found is not None:
                high = min(high, self._longest(found[1], master))
                if high - low <= CLOSE * limit or (refuting and high < limit):
                    break
            times, key = self.arcs.stage_times(best), best.tobytes()
            if key not in used:
                used.add(key)
                self.known[key] = best
                master.add_times(times)
                yield best
            self._longest(times, master)
        return low

    def _known_of(self, open_: Bools, master: PathMaster) -> set[bytes]:
        """Add the known pipelines of open stages to the master, and return their keys."""
        used, numbers = set[bytes](), np.arange(len(open_))
        for key, borders in list(self.known.items())[-MOST_KNOWN:]:
            if open_[numbers, borders[:-1], borders[1:]].all():
                master.add_times(self.arcs.stage_times(borders))
                used.add(key)
        return used

    def _longest(self, times: Floats, master: PathMaster) -> float:
        """Return the length of the longest path at given times of passes, and add it to the known ones."""
        path = self._path(times)
        self.paths.append(path)
        master.add_path(path)
        return float((path * times).sum())

    def _path(self, times: Floats) -> Floats:
        """Return how many passes of each stage and kind the longest path has, shape (stages, 3)."""
        graph, nothing = self.graph, np.zeros_like(times)
        end, via = np.empty(len(graph.stage)), np.empty(len(graph.stage), dtype=np.int64)
        passes = graph.stage, graph.direction
        last = path_ends(*passes, graph.before, graph.sender, times, nothing, nothing, end, via)
        found: Floats = count_passes(*passes, via, last, graph.stages)
        return found

    def _along_devices(self) -> list[Floats]:
        """Return for each device a path with all its passes, and others before and after them."""
        own = self.ranks[None, :] == np.arange(self.ranks.max() + 1)[:, None]
        return [self._path(np.repeat(np.where(each, 1.0, ASIDE)[:, None], 3, axis=1)) for each in own]
