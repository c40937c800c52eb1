"""What every method is given and returns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from partitioner.base.clock import Clock
from partitioner.base.interruption import CompilationStopped, Interruption
from partitioner.methods.placing import USUAL, Placing
from partitioner.problem.arrays import Ints
from partitioner.problem.problem import Problem

Item = TypeVar("Item")

ROUNDING = 1e-12
COMPILING = "compiling"
ANY_DEVICES = "bound_for_any_devices"  # key of `statistics`: a bound for every choice of devices in levels


@dataclass(frozen=True, eq=False)
class Part:
    """The supernodes that one device runs, and the kind of that device. In a chain a part is a stage.

    All replicas of a part run the same supernodes. `devices` are the indices of their devices among those
    of the kind, that of the first replica first; it is empty if any devices of the kind will do.
    """

    kind: int
    nodes: Ints
    replicas: int = 1
    devices: tuple[int, ...] = ()


def meets(bound: float, value: float, gap: float = 0.0) -> bool:
    """Whether the bound is within the gap of the value, up to rounding."""
    return bound >= value * (1 - max(gap, 2 * ROUNDING))


@dataclass(frozen=True)
class Progress:
    """A report of progress: `done` of `total` units of a phase, the value, bound and seconds so far."""

    phase: str
    done: int
    total: int
    value: float
    bound: float
    seconds: float


class OutOfTimeError(Exception):
    """Raised by :meth:`Settings.watched` in the middle of a step; the method that runs it catches it."""


@dataclass(frozen=True)
class Settings:
    """Limits and options of one run.

    Parameters
    ----------
    gap
        Stop once the value is proven within this fraction of the optimum.
    clock
        Says how much time the run has left; the time for compiling kernels does not count.
    seed
        Seed of everything random.
    memory_budget
        Bytes that tables and lattice of the exact search may take.
    step_limit
        Steps up the lattice after which the exact search gives up.
    orders
        How many linear orders to try, and how many refinements of the best.
    incumbent, incumbent_subgraph
        The parts of a known plan to start from; for latency also its subgraphs, as in :class:`Outcome`.
    backend
        The requested solver, or ``"auto"``.
    workers
        How many cores may be used.
    interruption
        Says whether the user wants the run to end.
    report
        Called with the progress several times during a run; None if nobody asks for it.
    patience
        Seconds that a placer of operators may wait for a solver.
    deterministic
        Whether work is limited by counts of steps, moves and nodes instead of seconds, and done one task
        after another, so that a run gives the same result every time.
    placing
        Options of the methods that place operators one by one.
    """

    gap: float = 0.0
    clock: Clock = field(default_factory=Clock)
    seed: int = 0
    memory_budget: int = 4 * 2**30
    step_limit: int = 2_000_000_000
    orders: int = 12
    incumbent: Sequence[Part] | None = None
    incumbent_subgraph: Ints | None = None
    backend: str = "auto"
    workers: int = 1
    interruption: Interruption = field(default_factory=Interruption)
    report: Callable[[Progress], None] | None = None
    started: float = field(default_factory=time.perf_counter)
    placing: Placing = USUAL
    deterministic: bool = False
    patience: float = math.inf

    @property
    def deadline(self) -> float | None:
        """Reading of ``time.perf_counter`` at which to stop, later while kernels compile; None: no limit."""
        return self.clock.deadline

    @property
    def expired(self) -> bool:
        """Whether the deadline has passed or the user wants the run to end."""
        return self.clock.expired or self.interruption.asked

    def watched(self, items: Iterable[Item], every: int = 1) -> Iterator[Item]:
        """Yield the items; check whether the run should end before the first and after each `every` items.

        Raises
        ------
        OutOfTimeError
            If the run should end.

        Examples
        --------
        >>> list(Settings().watched("ab"))
        ['a', 'b']
        """
        for number, item in enumerate(items):
            if number % every == 0 and self.expired:
                raise OutOfTimeError
            yield item

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the deadline, at least 0; None without a limit."""
        return None if self.deadline is None else self.clock.left

    def within(self, seconds: float) -> Settings:
        """Return the settings with a deadline at most `seconds` from now."""
        return replace(self, clock=self.clock.at_most(seconds))

    def for_share(self, share: float) -> Settings:
        """Return the settings with a share of the time that is left, if that is limited."""
        left = self.seconds_left
        return self if left is None else self.within(share * left)

    def on_compile(self, dispensable: bool = False) -> None:
        """Report that a kernel is about to be compiled, for a step that a plan can do without or not.

        Raises
        ------
        CompilationStopped
            If the user wants the run to end, or compiling has taken too long for a step that is dispensable.
        """
        if self.interruption.asked or (dispensable and self.compiled_enough):
            raise CompilationStopped
        self.report_progress(COMPILING, 0, 0, np.inf, 0.0)

    @property
    def compiled_enough(self) -> bool:
        """Whether steps that a plan can do without should compile no more kernels."""
        return not (self.deterministic or self.clock.may_compile)

    @property
    def stop_reason(self) -> str:
        """Why a run ends whose plan is not proven to be optimal."""
        if self.interruption.asked:
            return "interrupted"
        return "time_limit" if self.expired else "heuristic"

    def ended(self, bound: float, value: float) -> str:
        """Return why a run ends with this bound and this value."""
        if meets(bound, value):
            return "optimal"
        return "gap" if meets(bound, value, self.gap) else self.stop_reason

    def report_progress(self, phase: str, done: int, total: int, value: float, bound: float) -> None:
        """Call `report` with the progress, if one was given."""
        if self.report is not None:
            seconds = time.perf_counter() - self.started
            self.report(Progress(phase, done, total, value, bound, seconds))


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a method.

    Parameters
    ----------
    problem
        The problem whose supernodes the parts hold: the one given, or one contracted further.
    parts
        The part of each device in use, for a chain in the order of the stages; None if no plan was found.
    value
        The objective as the method computes it; the evaluator checks it.
    bound
        A lower bound: no split of the requested shape has a smaller value.
    stop_reason
        ``"optimal"``, ``"gap"``, ``"time_limit"``, ``"interrupted"`` or ``"heuristic"``.
    infeasible
        Whether it is proven that no split of that shape obeys the limits.
    notes
        What a user should know about how the plan was found, each note a clause.
    statistics
        Figures of the run by name.
    backend, native_status
        The solver, if the method has a choice of several, and the status that it reported when it stopped.
    subgraph
        Only for latency: shape (n,), the index of every supernode's subgraph among those of its device.
    order
        Only for makespans: all supernodes in the order in which their devices run them.
    alternatives
        By the position of a node of the user's graph: the name of the alternative that it runs.
    """

    problem: Problem
    parts: Sequence[Part] | None
    value: float
    bound: float
    stop_reason: str
    infeasible: bool = False
    notes: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)
    backend: str = ""
    native_status: str = ""
    subgraph: Ints | None = None
    order: Ints | None = None
    alternatives: Mapping[int, str] = field(default_factory=dict)

    def refined(self, problem: Problem) -> list[Part] | None:
        """Return the parts as those of a problem that is contracted less; None if there are none."""
        if self.parts is None:
            return None
        home = np.empty(problem.n, dtype=np.int64)
        home[problem.member] = self.problem.member
        return [replace(part, nodes=np.flatnonzero(np.isin(home, part.nodes))) for part in self.parts]

    @property
    def bound_on_any_devices(self) -> float:
        """The bound for every choice of devices, which is another one if that of the stages was limited."""
        return self.statistics.get(ANY_DEVICES, self.bound)


def no_split(problem: Problem) -> Outcome:
    """Return the outcome where it is proven that no split obeys the limits."""
    return Outcome(problem, None, np.inf, np.inf, "optimal", infeasible=True)


def out_of_time(problem: Problem, settings: Settings, bound: float) -> Outcome:
    """Return the outcome of a run that had to end before it found a split."""
    return Outcome(problem, None, np.inf, bound, settings.stop_reason)


class Method(Protocol):
    """A function that turns a problem, of the type that its annotation names, into an outcome."""

    def __call__(self, problem: Any, settings: Settings) -> Outcome:
        """Solve the problem within the settings' limits."""
        ...
