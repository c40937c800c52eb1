"""The solve of a latency problem by CP-SAT with a model of its own, not the integer program.

The model of latency for CP-SAT: Booleans place nodes, integers count time.

The seats of nodes: the subgraphs of devices that pay for transfers, and the devices that do not pay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from ortools.sat.python import cp_model

from partitioner.methods.communication import joint_terms
from partitioner.methods.latency.layout import SubgraphLayout
from partitioner.methods.latency.program.formulate import longest
from partitioner.methods.latency.program.seats import Seats, heads_and_tails, seats_of
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.methods.solvers.backends.cpsat import EFFORT_PER_SECOND
from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.variants import SampleProblem

UNITS = 10**8
LARGEST = 2**52

Literal = cp_model.IntVar
Term = tuple[Literal, int]


@dataclass(frozen=True, eq=False)
class ScheduleModel:
    """The model of a problem in integers, with all times rounded down, so that its optimum is a lower bound.

    Parameters
    ----------
    cp
        The model.
    seats
        The subgraphs and devices where nodes may be.
    scale
        The number of units in a time of 1.
    x
        For each node the Booleans of the seats that it may take.
    total
        The last finish.
    """

    cp: cp_model.CpModel
    seats: Seats
    scale: float
    x: list[dict[int, Literal]]
    total: cp_model.IntVar


class _Maker:
    """A model under construction, with the variables that the families of constraints share."""

    def __init__(self, problem: SampleProblem, cutoff: float, bound: float) -> None:
        horizon = min(cutoff, longest(problem))
        self.problem, self.seats = problem, seats_of(problem, horizon)
        self.scale = UNITS / horizon if horizon > 0 else 1.0
        self.cp, self.top = cp_model.CpModel(), int(np.ceil(horizon * self.scale))
        head, tail = heads_and_tails(problem)
        self.head, self.tail = self.units(np.minimum(head, horizon)), self.units(np.minimum(tail, horizon))
        self.x = [
            {s: self.cp.new_bool_var("") for s in np.flatnonzero(row).tolist()} for row in self.seats.open
        ]
        self.subgraphs = np.flatnonzero(self.seats.pays).tolist()
        self.latency = [self.cp.new_int_var(low, self.top, "") for low in self.head.tolist()]
        self.start = {s: self.time() for s in self.subgraphs}
        self.finish = {s: self.time() for s in self.subgraphs}
        low = min(int(np.floor(bound * self.scale * (1 - 1e-12))), self.top)
        self.total = self.cp.new_int_var(low, self.top, "")
        self.edges = list(
            zip(problem.successors.owners().tolist(), problem.successors.items.tolist(), strict=True)
        )

    def units(self, times: Floats) -> Ints:
        """Return times in integer units, rounded down."""
        return np.asarray(np.floor(np.asarray(times) * self.scale * (1 - 1e-12)).astype(np.int64))

    def time(self) -> cp_model.IntVar:
        """Return a new variable for a time."""
        return self.cp.new_int_var(0, self.top, "")

    def not_held(self, v: int, s: int) -> list[cp_model.LiteralT]:
        """Return the literal that says that a node is not at a seat; none if it never can be."""
        return [self.x[v][s].negated()] if s in self.x[v] else []


def model_of(problem: SampleProblem, cutoff: float, bound: float) -> ScheduleModel:
    """Return the model of a problem (paper, Appendix A.1) for values up to `cutoff`.

    Implications replace the linearised constraints. The seats of a device are ordered, so its subgraphs
    never overlap.
    """
    m = _Maker(problem, cutoff, bound)
    _placement(m)
    _memory(m)
    _lengths(m)
    _waiting(m)
    _progress(m)
    _ranks(m)
    m.cp.minimize(m.total)
    return ScheduleModel(m.cp, m.seats, m.scale, m.x, m.total)


def _placement(m: _Maker) -> None:
    """Add constraints: every node has one seat (1), and the nodes of a group share a device."""
    _, first = np.unique(m.problem.group, return_index=True)
    devices = np.unique(m.seats.device).tolist()
    for v, group in enumerate(m.problem.group.tolist()):
        m.cp.add_exactly_one(m.x[v].values())
        leader = int(first[group])
        for device in devices if leader != v else []:
            seats = np.flatnonzero(m.seats.device == device).tolist()
            mine = [(m.x[v][s], 1) for s in seats if s in m.x[v]]
            other = [(m.x[leader][s], 1) for s in seats if s in m.x[leader]]
            m.cp.add(_sum(mine) == _sum(other))


def _memory(m: _Maker) -> None:
    """Add constraints: the sizes on a device fit its memory (3*); roundings loosen them if not integral."""
    size, memory = m.problem.size, m.problem.memory
    whole = bool((size == np.round(size)).all()) and size.sum() < LARGEST
    factor = 1.0 if whole else UNITS / max(size.sum(), 1e-300)
    units = np.floor(size * factor).astype(np.int64).tolist()
    for device in np.unique(m.seats.device).tolist():
        seats = np.flatnonzero(m.seats.device == device).tolist()
        limit = memory[m.seats.kind[seats[0]]]
        if limit < size.sum():
            listed = [(m.x[v][s], units[v]) for v in range(m.problem.n) for s in seats if s in m.x[v]]
            room = int(np.floor(limit) if whole else np.ceil(limit * factor))
            m.cp.add(_sum(listed) <= room)


def _lengths(m: _Maker) -> None:
    """Add constraints: a subgraph takes the time of its transfers and its work (7)."""
    work = m.units(np.where(m.problem.allowed, m.problem.time.sum(axis=1), 0.0))
    for s in m.subgraphs:
        busy = [(m.x[v][s], int(work[m.seats.kind[s], v])) for v in range(m.problem.n) if s in m.x[v]]
        into, out = _transfers(m, s)
        for family in joint_terms(m.problem.communication, busy, into, out):
            m.cp.add(m.finish[s] >= m.start[s] + _sum(family))


def _transfers(m: _Maker, s: int) -> tuple[list[Term], list[Term]]:
    """Return the nets that may be moved into a subgraph, and out of it."""
    into: list[Term] = []
    out: list[Term] = []
    for e, cost in enumerate(m.units(m.problem.nets.cost).tolist()):
        source = int(m.problem.nets.source[e])
        readers = [v for v in m.problem.nets.pins.row(e).tolist() if v != source]
        for terms, pairs in ((into, [(v, source) for v in readers]), (out, [(source, v) for v in readers])):
            moved = _moved(m, pairs, s)
            terms += [(moved, cost)] if moved is not None else []
    return into, out


def _moved(m: _Maker, pairs: Sequence[tuple[int, int]], s: int) -> Literal | None:
    """Return a Boolean, true if of some pair the first node is in the subgraph and the second not (4, 5)."""
    there = [(v, w) for v, w in pairs if s in m.x[v]]
    if not there:
        return None
    moved = m.cp.new_bool_var("")
    for v, w in there:
        m.cp.add_bool_or([moved, m.x[v][s].negated(), *([m.x[w][s]] if s in m.x[w] else [])])
    return moved


def _waiting(m: _Maker) -> None:
    """Add constraints on waiting: of subgraphs, single nodes and devices (6, 8, 9, 10, 14)."""
    lone = np.flatnonzero(~m.seats.pays).tolist()
    work = m.units(np.where(m.problem.allowed, m.problem.time.sum(axis=1), 0.0))
    for v in range(m.problem.n):
        m.cp.add(m.latency[v] <= m.total)
        alone = [(m.x[v][s], int(work[m.seats.kind[s], v])) for s in lone if s in m.x[v]]
        m.cp.add(m.latency[v] >= _sum(alone))
        for u in m.problem.predecessors.row(v).tolist():
            m.cp.add(m.latency[v] >= m.latency[u] + _sum(alone))
        for s in m.subgraphs:
            if s in m.x[v]:
                m.cp.add(m.latency[v] >= m.finish[s]).only_enforce_if(m.x[v][s])
    for u, v in m.edges:
        for s in m.subgraphs:
            if s in m.x[v]:
                m.cp.add(m.start[s] >= m.latency[u]).only_enforce_if([m.x[v][s], *m.not_held(u, s)])
    for s, following in zip(m.subgraphs, m.subgraphs[1:], strict=False):
        if m.seats.device[s] == m.seats.device[following]:
            m.cp.add(m.finish[s] <= m.start[following])


def _progress(m: _Maker) -> None:
    """Add the constraints of :func:`partitioner.methods.latency.program.formulate.progress`, no transfers."""
    work = m.units(np.where(m.problem.allowed, m.problem.time.sum(axis=1), 0.0))
    done = []
    for v in range(m.problem.n):
        done.append(m.cp.new_int_var(int(min(m.head[v], m.top)), m.top, ""))
        time = _sum([(x, int(work[m.seats.kind[s], v])) for s, x in m.x[v].items()])
        m.cp.add(done[v] <= m.latency[v])
        m.cp.add(done[v] + int(m.tail[v]) <= m.total)
        m.cp.add(done[v] >= time)
        for u in m.problem.predecessors.row(v).tolist():
            m.cp.add(done[v] >= done[u] + time)


def _ranks(m: _Maker) -> None:
    """Add constraints as :func:`partitioner.methods.latency.program.formulate.ranks`."""
    brief = m.problem.work().min(axis=0) <= 1e-6 * m.top / m.scale
    edges = [(u, v) for u, v in m.edges if brief[u] and brief[v]]
    nodes = sorted({v for edge in edges for v in edge})
    rank = {v: m.cp.new_int_var(0, len(nodes), "") for v in nodes}
    of_seat = {s: m.cp.new_int_var(0, len(nodes), "") for s in m.subgraphs if nodes}
    for u, v in edges:
        m.cp.add(rank[u] <= rank[v])
        for s in m.subgraphs:
            if s in m.x[v]:
                m.cp.add(rank[v] >= rank[u] + 1).only_enforce_if([m.x[v][s], *m.not_held(u, s)])
    for v in nodes:
        for s in m.subgraphs:
            if s in m.x[v]:
                m.cp.add(rank[v] == of_seat[s]).only_enforce_if(m.x[v][s])
    for s, following in zip(of_seat, list(of_seat)[1:], strict=False):
        if m.seats.device[s] == m.seats.device[following]:
            m.cp.add(of_seat[s] <= of_seat[following])


def _sum(listed: Sequence[Term]) -> cp_model.LinearExpr:
    """Return the sum of factors times variables."""
    total: cp_model.LinearExpr = cp_model.LinearExpr.weighted_sum(
        [x for x, _ in listed], [t for _, t in listed]
    )
    return total


_STOPS = {cp_model.OPTIMAL: "optimal", cp_model.INFEASIBLE: "infeasible"}


@dataclass(frozen=True, eq=False)
class ScheduleTask:
    """The task to find a layout with a latency of at most `cutoff`, or to prove that there is none.

    Parameters
    ----------
    problem
        A problem for latency.
    cutoff
        Largest value to look for; infinity if no layout is known yet.
    bound
        A lower bound on the latency of all layouts.
    start
        A layout to start from.
    """

    problem: SampleProblem
    cutoff: float
    bound: float = 0.0
    start: SubgraphLayout | None = None
    unit: float = 1.0

    @property
    def payload(self) -> ScheduleTask:
        """The task itself, which the solver is given."""
        return self

    def solution(self, values: SubgraphLayout) -> SubgraphLayout:
        """Return the layout that the solver found."""
        return values


def solve_schedule(task: ScheduleTask, limits: SolverLimits, report: Tell) -> Answer:
    """Solve a task; layouts are reported and returned in place of the values of a program."""
    model = model_of(task.problem, task.cutoff, task.bound)
    if task.start is not None:
        _hint(model, model.seats.of(task.problem, task.start))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = max(1, limits.threads)
    solver.parameters.random_seed = limits.seed % 2**31
    solver.parameters.relative_gap_limit = limits.gap
    if limits.seconds is not None:
        solver.parameters.max_time_in_seconds = limits.seconds
    if limits.effort is not None:
        solver.parameters.max_deterministic_time = limits.effort / EFFORT_PER_SECOND
    solver.best_bound_callback = lambda found: report(None, found / model.scale)
    status = solver.solve(model.cp, _ScheduleListener(model, report))
    lowest = np.inf if status == cp_model.INFEASIBLE else solver.best_objective_bound / model.scale
    held = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    layout = _layout(model, solver.boolean_value) if held else None
    known = status in (cp_model.FEASIBLE, cp_model.UNKNOWN)
    stop = _STOPS.get(status, "time_limit" if known else "failed")
    return Answer(stop, layout, max(lowest, task.bound), solver.status_name(status))


def _hint(model: ScheduleModel, seat: Ints) -> None:
    for row, chosen in zip(model.x, seat.tolist(), strict=True):
        for s, x in row.items():
            model.cp.add_hint(x, s == chosen)


def _layout(model: ScheduleModel, chosen: Callable[[cp_model.IntVar], bool]) -> SubgraphLayout:
    seat = [next(s for s, x in row.items() if chosen(x)) for row in model.x]
    return model.seats.layout(np.array(seat, dtype=np.int64))


class _ScheduleListener(cp_model.CpSolverSolutionCallback):
    def __init__(self, model: ScheduleModel, report: Tell) -> None:
        super().__init__()
        self._model, self._tell = model, report

    def on_solution_callback(self) -> None:
        self._tell(_layout(self._model, self.boolean_value), -np.inf)
