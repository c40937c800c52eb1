"""Worker processes, how they end, and what a run keeps when they do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import psutil
import pytest

from partitioner import BackendUnavailable, Devices, Graph, NoPlanFound, Plan, Progress, evaluate, solve
from partitioner.base.clock import Clock
from partitioner.methods.baselines.trivial import solve_single
from partitioner.methods.bounds.cover import Covering
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.ip import solve as ip
from partitioner.methods.ip import solve as solving
from partitioner.methods.ip.formulate import formulate
from partitioner.methods.ip.solve import solve_ip
from partitioner.methods.ip.splits import SplitSearch, Task
from partitioner.methods.method import Part, Settings
from partitioner.methods.solvers.backends.backend import Answer, Capability, Job, SolverLimits
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.methods.solvers.portfolio import SolverPortfolio
from partitioner.methods.solvers.worker_pool import Worker, WorkerPool
from tests.methods.ip.backends import EACH_BACKEND
from tests.methods.ip.cases import hard_graph, misbehaving, problem_of

DEVICES = Devices.accelerated(4)
every_backend = pytest.mark.parametrize("name", EACH_BACKEND)


def hard_plan(name: str, **options: Any) -> Plan:
    return solve(hard_graph(), DEVICES, method="ip", split="free", backend=name, **options)


def run_with(monkeypatch: pytest.MonkeyPatch, *backends: Capability, **settings: Any) -> Any:
    """The outcome on the hard graph when these backends are picked and the first plan is one device's."""
    monkeypatch.setattr(ip, "pick", lambda name, program: (backends, ""))
    problem, limits = problem_of(hard_graph(), DEVICES), Settings(**settings)
    first = solve_single(problem, limits).parts or []
    monkeypatch.setattr(ip, "find_start", lambda search, cyclic: search.offer(first))
    monkeypatch.setattr(solving, "tighten", lambda search, relaxation: None)
    monkeypatch.setattr(ip, "least_part", lambda problem, settings, known: known)
    return solve_ip(problem, limits)


@pytest.fixture(scope="module", autouse=True)
def _compiled() -> None:
    """What is compiled on first use takes longer than any time limit here."""
    graph = hard_graph(6)
    plan = solve(graph, DEVICES, method="local_search", split="free")
    problem = problem_of(graph, DEVICES)
    Covering(problem, relax(problem)).rise(plan.value, 0.0, lambda: False, lambda bound: None)
    solve(graph, DEVICES, method="dp")


def pid_of(worker: Worker) -> int:
    """The process of a worker, as soon as it is started."""
    assert wait_until(lambda: worker.process is not None)
    assert worker.process is not None
    return worker.process.pid


@every_backend
def test_time_limit_keeps_the_incumbent(name: str) -> None:
    started = time.perf_counter()
    plan = hard_plan(name, time_limit=2.0)
    assert time.perf_counter() - started < 15.0
    assert (plan.status, plan.stop_reason, plan.backend) == ("feasible", "time_limit", name)
    assert 0 < plan.bound < plan.value
    assert plan.native_status.startswith(f"{name}: ")


@every_backend
def test_time_limit_without_a_plan_of_the_method(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it is the first plan, unless there is none."""
    monkeypatch.setattr(ip, "find_start", lambda *known: None)
    monkeypatch.setattr(solving, "tighten", lambda search, relaxation: None)
    monkeypatch.setattr(ip, "least_part", lambda problem, settings, known: known)
    plan = hard_plan(name, time_limit=0.2)
    assert (plan.status, plan.stop_reason) == ("feasible", "time_limit")
    monkeypatch.setattr("partitioner.planning.run.find_first_plan", lambda *_: None)
    with pytest.raises(NoPlanFound, match="time_limit"):
        hard_plan(name, time_limit=0.2)


@every_backend
def test_ctrl_c_returns_a_valid_plan(name: str) -> None:
    """A real signal, as soon as the solvers are at work with an incumbent in hand."""
    pressed: list[float] = []

    def press(progress: Progress) -> None:
        if progress.phase == "integer program" and np.isfinite(progress.value) and not pressed:
            pressed.append(time.perf_counter())
            signal.raise_signal(signal.SIGINT)

    plan = hard_plan(name, on_progress=press)
    assert time.perf_counter() - pressed[0] < 5.0
    assert plan.stop_reason == "interrupted"
    assert evaluate(hard_graph(), DEVICES, plan.placement).feasible


@every_backend
def test_a_killed_solver_leaves_the_incumbent(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process dies in the middle of the solve: the plan stays, and the notes say why."""
    submit = Worker.submit

    def submit_and_kill(worker: Worker, job: Job) -> None:
        submit(worker, job)
        os.killpg(pid_of(worker), signal.SIGKILL)

    monkeypatch.setattr(Worker, "submit", submit_and_kill)
    outcome = run_with(monkeypatch, BACKENDS[name], workers=1)
    assert outcome.stop_reason == "heuristic"
    assert np.isfinite(outcome.value)
    assert outcome.notes == (f"backend {name} failed: its process ended with code -9",)


def test_a_solver_that_raises_leaves_the_others_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time limit is reached once it has failed and the other is at work, however slowly both start."""
    backends = (misbehaving("raises"), BACKENDS["highs"])
    clock, step = Clock(120.0), SolverPortfolio.step

    def step_and_end_soon(portfolio: SolverPortfolio) -> bool:
        goes_on = step(portfolio)
        if portfolio.slots[0].done and portfolio.slots[1].run is not None:
            object.__setattr__(clock, "limit", min(clock.limit, time.perf_counter() - clock.started + 0.5))
        return goes_on

    monkeypatch.setattr(SolverPortfolio, "step", step_and_end_soon)
    outcome = run_with(monkeypatch, *backends, workers=2, clock=clock)
    assert "backend raises failed: RuntimeError: no such pivot" in outcome.notes
    assert outcome.backend == "raises+highs"
    assert outcome.stop_reason == "time_limit"


def test_a_solver_that_takes_its_process_along(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run_with(monkeypatch, misbehaving("dies"), workers=1)
    assert outcome.notes == ("backend dies failed: its process ended with code 3",)
    assert outcome.stop_reason == "heuristic"


def test_nonsense_from_a_solver_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it prints disturbs nothing; its bound of zero and its parts are checked like any others."""
    outcome = run_with(monkeypatch, misbehaving("babbles"), workers=1)
    assert outcome.stop_reason == "heuristic"
    assert outcome.bound > 0
    assert np.isfinite(outcome.value)


def test_a_plan_that_breaks_memory_by_a_tolerance_is_refused() -> None:
    """What a solver takes for feasible is kept only if the sizes really fit."""
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], 1.0, size=0.5 + 5e-8)
    search = SplitSearch(problem_of(graph, Devices.accelerated(2, memory=1.0)), Settings(), 0.0)
    parts = [Part(0, np.arange(2))]
    assert not search.offer(parts)
    search.refuse(parts)
    assert [(kind, nodes.tolist()) for kind, nodes in search.covers] == [(0, [0, 1])]
    assert search.offer([Part(0, np.array([0])), Part(0, np.array([1]))])


@every_backend
def test_memory_is_exact_whatever_a_solver_tolerates(name: str) -> None:
    """Two nodes exceed the memory by a ten-millionth: the plan puts them apart and is proven."""
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], 1.0, size=0.5 + 5e-8)
    plan = solve(graph, Devices.accelerated(2, memory=1.0), method="ip", split="free", backend=name)
    assert (plan.value, plan.status) == (2.0, "optimal")


def test_an_orphaned_worker_leaves() -> None:
    """When the program that started it is gone, a worker ends in the middle of its solve."""
    script = (
        "import os, time, numpy as np\n"
        "from partitioner import Devices\n"
        "from partitioner.methods.solvers.backends.backend import SolverLimits\n"
        "from partitioner.methods.solvers.backends.catalogue import BACKENDS\n"
        "from partitioner.methods.solvers.worker_pool import WorkerPool\n"
        "from partitioner.methods.ip.formulate import formulate\n"
        "from partitioner.methods.solvers.backends.backend import Job\n"
        "from partitioner.methods.ip.splits import Task\n"
        "from tests.methods.ip.cases import hard_graph, problem_of\n"
        "problem = problem_of(hard_graph(), Devices.accelerated(4))\n"
        "program = formulate(Task(problem, np.inf, 0.0)).program\n"
        "pool = WorkerPool()\n"
        "worker = pool.start()\n"
        "worker.submit(Job(BACKENDS['scip'].place, program, SolverLimits()))\n"
        "pool.next(1.0)\n"
        "time.sleep(1.0)\n"
        "print(worker.process.pid, flush=True)\n"
        "os._exit(0)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    pid = int(done.stdout)
    assert wait_until(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def wait_until(holds: Callable[[], bool], seconds: float = 5.0) -> bool:
    end = time.perf_counter() + seconds
    while not holds() and time.perf_counter() < end:
        time.sleep(0.05)
    return holds()


def test_leaving_the_crew_ends_its_workers() -> None:
    program = formulate(Task(problem_of(hard_graph(), DEVICES), np.inf, 0.0)).program
    with closing(WorkerPool()) as pool:
        worker = pool.start()
        worker.submit(Job(BACKENDS["cbc"].place, program, SolverLimits()))
        time.sleep(1.0)
    assert worker.process is not None and worker.process.returncode == -signal.SIGKILL
    event = pool.next(2.0)
    assert event is None or isinstance(event.message, Answer) or event.message.values is None


def test_a_backend_that_is_not_there_is_named() -> None:
    with pytest.raises(BackendUnavailable, match="does not run on 'cplex'"):
        hard_plan("cplex")


def test_an_incumbent_at_the_bound_needs_no_solver() -> None:
    """Two equal nodes, two devices, no transfer: the first plan is optimal at once."""
    graph = Graph.from_arrays({"accelerator": [1.0, 1.0]}, [], [])
    plan = solve(graph, Devices.accelerated(2), method="ip", split="free")
    assert (plan.value, plan.status, plan.stop_reason) == (1.0, "optimal", "optimal")


@pytest.mark.slow
def test_the_convex_program_confirms_the_chain() -> None:
    """On a graph with one path every convex split is a chain: the two programs agree."""
    rng = np.random.default_rng(5)
    edges = [(i, i + 1) for i in range(13)]
    graph = Graph.from_arrays({"accelerator": rng.uniform(1, 3, 14)}, edges, rng.uniform(0.1, 1, 13))
    chain = solve(graph, Devices.accelerated(3)).value
    plan = solve(graph, Devices.accelerated(3), method="ip", split="convex")
    assert plan.status == "optimal"
    assert plan.value == pytest.approx(chain, rel=1e-9)
    assert solve(graph, Devices.accelerated(3), method="ip", split="free").value <= chain * (1 + 1e-9)
