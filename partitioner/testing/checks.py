"""The checks that every method must pass, of plans and of how runs end, and the workloads of these checks."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from partitioner.base.clock import Clock
from partitioner.evaluation.shape import SHAPES
from partitioner.extensions import registered
from partitioner.methods.info import MethodInfo
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import Objective, objective_of
from partitioner.testing.failures import LateEnd, MissingPlan, NotRepeatable, WrongBound, WrongPlan
from partitioner.testing.oracle import NEEDS_ORDER, least_value
from partitioner.testing.question import TOLERANCE, MethodAnswer, Question
from partitioner.workload.devices import COMMUNICATION_MODELS, DeviceKind, Devices
from partitioner.workload.graph import Graph

LIMIT = 0.5  # seconds: the time limit of a run, and the time until it is asked to stop
GRACE = 1.0  # seconds that a run may take to end
MOST_NODES, MOST_ORDERED = 6, 4  # nodes of workloads, and of workloads for which all orders are tried
EVERY = 5  # every fifth case is solved twice
ENOUGH = 5  # among this number of cases with a plan, a method must solve at least one


def check_method(
    method: str | MethodInfo,
    objectives: Sequence[str] | None = None,
    cases: int = 50,
    seed: int = 0,
    **options: Any,
) -> None:
    """Run all checks that every method must pass: :func:`check_plans` and :func:`check_endings`.

    Parameters
    ----------
    method
        A registered name, or a record, which is registered during the check.
    objectives
        The objectives to check; by default all that the method supports.
    cases
        The number of random workloads for each objective.
    seed
        The seed of the first workload; the others have the following seeds.
    **options
        Further options of :func:`partitioner.solve`, such as ``backend``.

    Raises
    ------
    MethodFailure
        An ``AssertionError`` that says what is wrong, with a call that reproduces the failure.
    OptionError
        If no method or objective has that name.
    BackendUnavailable
        If the method needs a solver that is not installed.

    Examples
    --------
    >>> check_method("single_device", ["throughput"], cases=2)
    """
    check_plans(method, objectives, cases, seed, **options)
    check_endings(method, objectives, cases, seed, **options)


def check_plans(
    method: str | MethodInfo,
    objectives: Sequence[str] | None = None,
    cases: int = 50,
    seed: int = 0,
    **options: Any,
) -> None:
    """Compare a method with an exhaustive search on small random workloads.

    A plan obeys the rules, and has the requested shape and the value that the evaluator computes. No bound is
    above the least value. A workload is reported as infeasible only if no placement obeys the rules. A plan
    is found if there is one, unless `may_miss` is set in the method's record. Two deterministic runs with
    one seed return the same plan.

    Parameters and errors are those of :func:`check_method`.

    Examples
    --------
    >>> check_plans("dp", cases=2)
    """
    with _known(method) as info:
        for objective in _objectives(info, objectives):
            _check_objective(info, objective, range(seed, seed + cases), options)


def check_endings(
    method: str | MethodInfo,
    objectives: Sequence[str] | None = None,
    cases: int = 1,
    seed: int = 0,
    **options: Any,
) -> None:
    """Check that a run on a graph of 60 nodes ends on a time limit, on an event and on Ctrl-C.

    Each run must end within a second, without the time of compilation, with a valid plan or with
    :class:`partitioner.NoPlanFound` or ``KeyboardInterrupt``.

    Parameters and errors are those of :func:`check_method`; `cases` has no effect: there is one workload.
    """
    with _known(method) as info:
        for objective in _objectives(info, objectives):
            graph, devices = large_workload(seed)
            split = _splits(info, objective)[0]
            name = check_endings.__name__
            question = Question(info, objective, split, seed, graph, devices, name, options)
            for check in (check_time_limit, check_stop, check_ctrl_c):
                check(question)


@contextmanager
def _known(method: str | MethodInfo) -> Iterator[MethodInfo]:
    """Yield the record of a method, which is registered during the block."""
    if isinstance(method, MethodInfo) and METHODS.get(method.name) is not method:
        with registered(method):
            yield method
        return
    name = method.name if isinstance(method, MethodInfo) else method
    METHODS.check("method", name)
    yield METHODS[name]


def _objectives(info: MethodInfo, names: Sequence[str] | None) -> list[Objective]:
    return [objective_of(name, info.name) for name in (info.objectives if names is None else names)]


def _splits(info: MethodInfo, objective: Objective) -> list[str]:
    """Return the splits that both the method and the objective support, the strictest first."""
    able = info.splits_for(objective.name)
    return [split for split in SHAPES if split in able and split in objective.splits] or list(able)


def _check_objective(info: MethodInfo, objective: Objective, seeds: range, options: dict[str, Any]) -> None:
    most = MOST_ORDERED if NEEDS_ORDER in objective.terms else MOST_NODES
    splits = _splits(info, objective)
    solvable, answers = 0, []
    for seed in seeds:
        graph, devices = small_workload(seed, most)
        split, name = splits[seed % len(splits)], check_plans.__name__
        question = Question(info, objective, split, seed, graph, devices, name, options)
        least = least_value(graph, devices, objective, split, question.terms)
        answers.append(question.ask())
        solvable += least is not None
        _judge(question, answers[-1], least)
        if seed % EVERY == 0:
            _check_repeated(question)
    if solvable >= ENOUGH and not any(answer.plan for answer in answers):
        words = f"no plan in any of {solvable} cases that have one; the last message was: {answers[-1].words}"
        raise MissingPlan(question.say(words), question.line)


def _judge(question: Question, answer: MethodAnswer, least: float | None) -> None:
    """Raise if an answer contradicts the least value, which is None if there is no plan."""
    plan = answer.plan
    if plan is None:
        if least is not None:
            question.check_no_plan(answer)
        return
    question.check_sound(plan)
    if least is None:
        raise WrongPlan(question.say("returned a plan, but an exhaustive search finds none"), question.line)
    margin = TOLERANCE * max(1.0, abs(least))
    if plan.bound > least + margin:
        words = f"the bound {plan.bound!r} is above the least value {least!r}"
        raise WrongBound(question.say(words), question.line)
    if plan.value < least - margin and "order" not in question.objective.needs:
        words = f"the value {plan.value!r} is below the least value {least!r}"
        raise WrongPlan(question.say(words), question.line)


def _check_repeated(question: Question) -> None:
    """Raise if two deterministic runs give different plans."""
    first, second = (question.ask(deterministic=True).plan for _ in range(2))
    if first is None or second is None:
        same = first is second
    else:
        parts = ("placement", "value", "stages", "subgraphs", "execution_order")
        same = all(getattr(first, part) == getattr(second, part) for part in parts)
    if not same:
        words = f"two runs with seed {question.seed} differ: {first!r}, {second!r}"
        raise NotRepeatable(question.say(words), question.line)


# Random workloads: small ones for the exhaustive search, and a large one that takes a method some time.


TIMES = (0.0, 0.5, 1.0, 1.0, 2.0, 3.5, 7.0)
COSTS = (0.0, 0.25, 0.5, 1.0, 4.0)
SIZES = (0.0, 1.0, 2.0, 3.0)
LARGE = 60  # nodes of the large workload


def small_workload(seed: int, most_nodes: int = 6) -> tuple[Graph, Devices]:
    """Return a graph of at most `most_nodes` nodes, and one to three devices.

    Some workloads have a backward node for every forward node, little memory, nodes that run on one kind
    only, or a device that does not pay for transfers. Some have no plan.

    Examples
    --------
    >>> graph, devices = small_workload(7)
    >>> len(graph), devices.names
    (3, ('gpu0', 'gpu1'))
    """
    rng = random.Random(seed)
    nodes = rng.randint(1, most_nodes)
    forward, backward = (nodes // 2, nodes // 2) if nodes > 1 and rng.random() < 0.5 else (nodes, 0)
    graph = _graph(rng, forward, backward, density=rng.choice((0.3, 0.6)), everywhere=False)
    return graph, _devices(rng, float(graph.size.sum()))


def large_workload(seed: int) -> tuple[Graph, Devices]:
    """Return a graph of :data:`LARGE` forward nodes, and four devices with half its size as memory each."""
    rng = random.Random(seed)
    graph = _graph(rng, LARGE, 0, density=4 / LARGE, everywhere=True)
    memory = float(graph.size.sum()) / 2
    return graph, Devices((DeviceKind("gpu", 4, memory=memory),))


def _graph(rng: random.Random, forward: int, backward: int, density: float, everywhere: bool) -> Graph:
    """Return a graph of forward nodes, and of mirrored backward nodes of the same colours after them."""
    pairs = [(u, v) for v in range(forward) for u in range(v) if rng.random() < density]
    cost = {node: rng.choice(COSTS) for node in range(forward + backward)}
    edges = list(pairs)
    if backward:
        twin = {node: 2 * forward - 1 - node for node in range(forward)}
        edges += [(twin[v], twin[u]) for u, v in pairs]
        edges += [(node, twin[node]) for node in range(forward)]
    gpu = [rng.choice(TIMES) for _ in range(forward + backward)]
    only = [0.5 if everywhere else rng.random() for _ in range(forward)]
    colour = [*range(forward), *reversed(range(forward))][: forward + backward]
    return Graph.from_arrays(
        {"gpu": gpu, "cpu": [4.0 * time for time in gpu]},
        edges,
        [cost[source] for source, _ in edges],
        size=[rng.choice(SIZES) for _ in gpu],
        backward=[node >= forward for node in range(forward + backward)],
        allowed={"gpu": [only[c] > 0.05 for c in colour], "cpu": [only[c] < 0.9 for c in colour]},
        color=colour if backward else None,
    )


def _devices(rng: random.Random, total: float) -> Devices:
    gpus, cpus = rng.choice(((1, 0), (2, 0), (2, 0), (3, 0), (1, 1), (2, 1)))
    memory = float(round(total * rng.uniform(0.3, 1.0))) if rng.random() < 0.5 else None
    kinds = (DeviceKind("gpu", gpus, memory=memory), DeviceKind("cpu", cpus, pays_communication=False))
    return Devices(kinds[: 1 + (cpus > 0)], rng.choice(COMMUNICATION_MODELS))


def check_time_limit(question: Question) -> None:
    """Run the method with a time limit; the compilation of kernels does not count.

    Raises
    ------
    MethodFailure
        If the run takes a second more than the limit, or its answer is wrong.
    """
    _check(question, f"the time limit of {LIMIT:g} s", lambda: question.ask(time_limit=LIMIT))


def check_stop(question: Question) -> None:
    """Run the method without a time limit, and set the event `stop` of the call.

    Raises
    ------
    MethodFailure
        If the run takes a second more after that, or its answer is wrong.
    """

    def ask() -> MethodAnswer:
        event = threading.Event()
        timer = threading.Timer(LIMIT, event.set)
        timer.start()
        try:
            return question.ask(stop=event)
        finally:
            timer.cancel()

    _check(question, f"the event that was set after {LIMIT:g} s", ask)


def check_ctrl_c(question: Question) -> None:
    """Run the method without a time limit, and send the signal of Ctrl-C.

    Nothing is run if the signal cannot be sent: outside the main thread, if the program has set a handler for
    it, and on systems without ``signal.pthread_kill``.

    Raises
    ------
    MethodFailure
        If the run takes a second more after that, or its answer is wrong.
    """
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    main = threading.current_thread() is threading.main_thread()
    if ours and main and hasattr(signal, "pthread_kill"):
        _check(question, f"Ctrl-C after {LIMIT:g} s", lambda: _interrupted(question))


def _interrupted(question: Question) -> MethodAnswer:
    """Return the answer of a run that gets the signal, which may also arrive just after its end."""
    thread = threading.get_ident()
    timer = threading.Timer(LIMIT, lambda: signal.pthread_kill(thread, signal.SIGINT))
    try:
        timer.start()
        try:
            return question.ask()
        finally:
            timer.cancel()
            timer.join()
    except KeyboardInterrupt:
        return MethodAnswer(None, "interrupted")


def _check(question: Question, what: str, ask: Callable[[], MethodAnswer]) -> None:
    """Run, and once more if the run takes too long: the first run also loads modules."""
    seconds = 0.0
    for _ in range(2):
        clock = Clock()
        answer = ask()
        seconds = Clock().started - clock.started - clock.compiled
        if answer.plan is not None:
            question.check_sound(answer.plan)
        elif answer.reason != "interrupted" and answer.reason != "no plan":
            question.check_no_plan(answer)
        if seconds <= LIMIT + GRACE:
            return
    raise LateEnd(question.say(f"in spite of {what} the run took {seconds:.1f} s"), question.line)
