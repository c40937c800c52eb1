"""The search for the least makespan that no weighted path through the schedule refutes."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field

import numpy as np

from partitioner.methods.bounds.several_stages.arcs import StageArcs
from partitioner.methods.bounds.several_stages.master import PathMaster
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.pass_graph import PassGraph
from partitioner.methods.virtual_stages.path_kernel import count_passes, path_ends
from partitioner.problem.arrays import Bools, Floats, Ints

NARROW = 5e-4  # of the value: the distance of bound and value at which the search ends
CLOSE = 1e-4  # of the value: the distance at which prices count as the best ones
MOST_PRICES = 120  # weighted paths that are tried for a set of stages
MOST_ROUNDS = 6  # times that stages are closed at one makespan
LITTLE = 0.98  # closing ends if more than this fraction of the stages is left
MOST_PATHS, MOST_KNOWN = 400, 400
ASIDE = 1e-3  # length of the passes of other devices in the path along a device
ROUNDING = 1e-9


@dataclass(eq=False)
class PathBound:
    """A lower bound on the makespan of the pipelines on some number of devices, and good pipelines.

    Parameters
    ----------
    graph
        The passes of a batch.
    arcs
        The times of stages.
    ranks
        Shape (stages,): the device of every stage.
    open_
        Shape (stages, m, m): which stages pipelines may have, by their number and two cuts.
    settings
        Say when the run must end.
    bound
        A lower bound on the makespan of every pipeline with these stages.
    value
        The least makespan that is known, which whoever simulates pipelines may lower.
    """

    graph: PassGraph
    arcs: StageArcs
    ranks: Ints
    open_: Bools
    settings: Settings
    bound: float
    value: float
    paths: list[Floats] = field(default_factory=list)
    known: dict[bytes, Ints] = field(default_factory=dict)
    best: Floats | None = None

    def narrow(self) -> Iterator[Ints]:
        """Raise the bound towards the value.

        Yields
        ------
        array of int
            Shape (stages + 1,): the cuts of a pipeline, which may be a good one.
        """
        rows = self._along_devices()
        self.paths = list(rows)
        low = yield from self._priced(self.open_, self.value)
        self.bound, high = max(self.bound, min(low, self.value)), self.value
        while not self.settings.expired and (high := min(high, self.value)) - self.bound > NARROW * high:
            middle = (self.bound + high) / 2
            if (yield from self._refuted(middle, rows)):
                self.bound = middle
            else:
                high = middle

    def _refuted(self, limit: float, rows: list[Floats]) -> Generator[Ints, None, bool]:
        """Return whether no pipeline has a makespan of at most `limit`; yield pipelines found on the way."""
        open_ = self.open_
        for _ in range(MOST_ROUNDS):
            count = int(open_.sum())
            for path in rows if self.best is None else [*rows, self.best]:
                if self.settings.expired:
                    return False
                open_ = open_ & (self.arcs.through(path, open_) <= limit * (1 + ROUNDING))
            low = yield from self._priced(open_, limit)
            if low > limit * (1 + ROUNDING):
                return True
            if open_.sum() > LITTLE * count:
                return False
        return False

    def _priced(self, open_: Bools, limit: float) -> Generator[Ints, None, float]:
        """Return a lower bound for pipelines of open stages, at most one that exceeds `limit`."""
        master, low, high = PathMaster(self.paths[-MOST_PATHS:]), -np.inf, np.inf
        numbers, used = np.arange(len(open_)), set[bytes]()
        for key, borders in list(self.known.items())[-MOST_KNOWN:]:
            if open_[numbers, borders[:-1], borders[1:]].all():
                master.add_times(self.arcs.stage_times(borders))
                used.add(key)
        for _ in range(MOST_PRICES):
            if self.settings.expired:
                break
            found = master.solve() if used else None
            path = np.mean(self.paths, axis=0) if found is None else found[0]
            value, best = self.arcs.least(path, open_)
            if value > low:
                low, self.best = value, path
            if best is None or low > limit * (1 + ROUNDING):
                break
            if found is not None:
                high = min(high, self._longest(found[1], master))
                if high - low <= CLOSE * limit:
                    break
            times, key = self.arcs.stage_times(best), best.tobytes()
            if key not in used:
                used.add(key)
                self.known[key] = best
                master.add_times(times)
                yield best
            self._longest(times, master)
        return low

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
