"""The objectives: what each means for splits, options, methods and the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.base.registry import Registry, imported
from partitioner.evaluation.capacity import check_cache, evaluate_capacity
from partitioner.evaluation.one_by_one import evaluate_makespan
from partitioner.evaluation.one_sample import evaluate_latency
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.shape import SHAPES
from partitioner.evaluation.solution import PlanRecord, Solution
from partitioner.evaluation.stages import evaluate_batch, evaluate_gpipe, evaluate_piper, evaluate_throughput
from partitioner.evaluation.terms import Terms
from partitioner.methods.registry import METHODS
from partitioner.problem.contract import contract, contract_piper
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.results.plan import Plan
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.virtual_stages.schedules import VIRTUAL

Evaluator = Callable[[Graph, Devices, Solution, Terms], Evaluation]
Contraction = Callable[[Graph, Devices, Goal], Problem]
Check = Callable[[Graph, Devices, Mapping[str, Any]], None]
PIPELINE = ("replicas", "order", "schedule", "microbatches", "levels", "groups", "alternatives")
SEVERAL = (*PIPELINE, "stage_of")
CHOOSING = {
    "replicas",
    "equal replicas",
    "schedule",
}  # features of pipelines whose nodes may run in several ways
SAMPLE = ("subgraphs", "subgraphs_per_accelerator", "limited_cpus")
TIME_LIMITS = ("max_time_per_sample", "max_slowdown")  # of samples, where the most in flight are looked for
TAKE_TURNS = (None, "inference")  # schedules under which a stage of a plan for capacity may have replicas


def no_check(graph: Graph, devices: Devices, options: Mapping[str, Any]) -> None:
    """Refuse nothing."""


@dataclass(frozen=True)
class Objective:
    """An objective: what other parts of the package must know of it.

    Parameters
    ----------
    name
        As in ``solve(objective=...)``.
    measure
        What methods are told of it. :attr:`Measure.OTHER` is for objectives that only their own methods know;
        `contract` then keeps every optimum if the value never falls when a load grows.
    splits
        The splits that plans may have; the first one is the default.
    terms
        The parts of solutions and the terms (:class:`partitioner.evaluation.terms.Terms`) that its value
        depends on; others are refused. ``"transfer_factor"``: kinds of device may scale transfers.
    method, chain_method
        What ``method="auto"`` takes, and for chains. A chain with replicas, levels, schedules or limits is
        always made by `extended_method`; with several stages on a device by `virtual_method` if there is one.
    choosing_method
        What ``method="auto"`` takes for chains if nodes have alternatives among which it can choose.
    evaluate
        Computes the value of a solution: ``(graph, devices, solution, terms)`` to an
        :class:`partitioner.Evaluation`, from the user's graph and not by the code of a method.
    contract
        Makes the problem of a method: ``(graph, devices, goal)`` to a `Problem`; `goal.measure` is `measure`.
    needs
        Terms that must be given.
    period
        What ends in the time that is its value: ``"sample"``, ``"samples"`` (a batch), or empty for other
        values.
    base
        The objective whose methods find its plans, if several searches of these are needed; None if methods
        are asked for the objective itself.
    search
        The text ``"module:function"`` of the function that returns the plan for a request; by default it is
        one run of a method.
    check
        Refuses what the objective has no meaning for: ``(graph, devices, options)``, the options by name.

    Raises
    ------
    OptionError
        If a field is of another type, or a split does not exist.
    """

    name: str
    measure: Measure
    splits: tuple[str, ...]
    terms: tuple[str, ...]
    method: str
    evaluate: Evaluator
    chain_method: str = ""
    extended_method: str = "pipeline"
    virtual_method: str = ""
    choosing_method: str = ""
    contract: Contraction = contract
    needs: tuple[str, ...] = ()
    period: str = ""
    base: Objective | None = None
    search: str = "partitioner.planning.run:find_plan"
    check: Check = no_check

    def __post_init__(self) -> None:
        rules = {
            "measure": ("a Measure", isinstance(self.measure, Measure)),
            "splits": (f"a tuple of {', '.join(SHAPES)}", _are_splits(self.splits)),
            "terms": ("a tuple of texts", isinstance(self.terms, tuple)),
            "evaluate": ("a function", callable(self.evaluate)),
            "contract": ("a function", callable(self.contract)),
        }
        for name, (rule, holds) in rules.items():
            if not holds:
                value = shown(getattr(self, name))
                raise OptionError(f"objective {shown(self.name)}: {name} = {value}: must be {rule}")

    def answer(self, request: Any) -> Plan:
        """Return the plan for a :class:`partitioner.planning.request.Request` of this objective.

        Raises
        ------
        WorkloadError, OptionError, InfeasibleError, NoPlanFound
            As for :func:`partitioner.solve`.
        """
        plan: Plan = imported(self.search)(request)
        return plan

    @property
    def known_as(self) -> str:
        """The name of the objective that methods are asked for."""
        return self.name if self.base is None else self.base.name

    def automatic(self, split: str, features: Sequence[str], choosing: bool = False) -> str:
        """Return the method that ``"auto"`` takes for a split and the features that the method must have.

        `choosing` says whether nodes have alternatives, on devices among which a method can choose them.
        """
        if split != "chain":
            return self.method
        if choosing and self.choosing_method and set(features) <= CHOOSING:
            return self.choosing_method
        if "virtual stages" in features and self.virtual_method:
            return self.virtual_method
        return self.extended_method if features and self.extended_method else self.chain_method or self.method

    def freer(self, shape: str) -> str:
        """Return the least free split of the objective that contains every solution of a shape."""
        freer = SHAPES[SHAPES.index(shape) :]
        return next((split for split in freer if split in self.splits), self.splits[0])


def _are_splits(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(split in SHAPES for split in value)


def _check_simulated(graph: Graph, devices: Devices, options: Mapping[str, Any]) -> None:
    """Refuse methods that place operators: a pipeline is simulated stage by stage.

    Raises
    ------
    OptionError
        Naming the method.
    """
    method = options["method"]
    if method in METHODS and METHODS[method].places_operators:
        raise OptionError(f"method {method} runs one step operator by operator: schedule means nothing to it")


def _check_capacity(graph: Graph, devices: Devices, options: Mapping[str, Any]) -> None:
    """Refuse workloads and options for which no number of samples in flight is defined.

    Raises
    ------
    WorkloadError
        If no node has a cache, or a kind of device has no memory limit.
    OptionError
        If devices have several stages, stages may have replicas under a schedule for training, or both limits
        of the time are given.
    """
    name, replicas, schedule = CAPACITY.name, options["replicas"], options["schedule"]
    if schedule in VIRTUAL:
        rule = f"must have one stage on each device for objective {name!r}"
        raise OptionError(f"schedule = {schedule!r}: {rule}")
    check_cache(graph)
    rule = f"must be given: objective {name!r} counts the samples that fit it"
    flaws = [
        Flaw(f"device kind {kind.name}", "memory", "None", rule)
        for kind in devices.kinds
        if kind.count and kind.memory is None
    ]
    if flaws:
        raise WorkloadError(flaws)
    if replicas > 1 and schedule not in TAKE_TURNS:
        words = f"must be 1 for objective {name!r} under schedule {schedule!r}"
        rule = "the samples of stages with replicas are counted without a schedule and under 'inference' only"
        raise OptionError(f"replicas = {replicas}: {words}: {rule}")
    if all(options[limit] is not None for limit in TIME_LIMITS):
        raise OptionError(f"{' and '.join(TIME_LIMITS)} limit the same time: give one of them")


THROUGHPUT = Objective(
    "throughput",
    Measure.LARGEST_LOAD,
    splits=("chain", "convex", "free"),
    terms=(*SEVERAL, "transfer_factor"),
    method="ip",
    chain_method="dp",
    virtual_method="virtual_stages",
    choosing_method="alternatives",
    evaluate=evaluate_throughput,
    period="sample",
)
GPIPE = Objective(
    "gpipe",
    Measure.LARGEST_LOAD_BY_PASS,
    splits=("chain", "convex", "free"),
    terms=("transfer_factor",),
    method="ip",
    chain_method="dp",
    extended_method="dp",
    evaluate=evaluate_gpipe,
    period="sample",
)


LATENCY = Objective(
    "latency",
    Measure.ONE_SAMPLE,
    splits=("convex",),
    terms=SAMPLE,
    method="latency_ip",
    evaluate=evaluate_latency,
)
BATCH = Objective(
    "batch",
    Measure.BATCH,
    splits=("chain",),
    terms=(*PIPELINE, "transfer_factor"),
    method="pipeline",
    choosing_method="alternatives",
    evaluate=evaluate_batch,
    needs=("microbatches",),
    period="samples",
)
PIPER = Objective(
    "piper",
    Measure.LARGEST_LOAD,
    splits=("chain",),
    terms=("replicas", "order", "schedule", "microbatches", "alternatives", "transfer_factor"),
    method="alternatives",
    evaluate=evaluate_piper,
    extended_method="alternatives",
    contract=contract_piper,
    needs=("microbatches",),
    period="sample",
)
OPERATORS = Objective(
    "makespan",
    Measure.LAST_OPERATOR,
    splits=("free",),
    terms=("transfers", "execution_order", "levels", "groups", "transfer_factor"),
    method="exact",
    extended_method="",
    evaluate=evaluate_makespan,
)
SIMULATED = Objective(
    "makespan",
    Measure.LARGEST_LOAD,
    splits=("chain",),
    terms=(*SEVERAL, "transfer_factor"),
    method="simulated",
    extended_method="",
    evaluate=evaluate_throughput,
    needs=("schedule", "microbatches"),
    search="partitioner.planning.pipeline_makespan.ranking:find_makespan",
    check=_check_simulated,
    period="samples",
)
CAPACITY = Objective(
    "capacity",
    Measure.LARGEST_LOAD,
    splits=THROUGHPUT.splits,
    terms=(
        *("replicas", "order", "schedule", "microbatches"),
        *("levels", "groups", "max_time_per_sample", "transfer_factor"),
    ),
    method=THROUGHPUT.method,
    chain_method=THROUGHPUT.chain_method,
    evaluate=evaluate_capacity,
    base=THROUGHPUT,
    search="partitioner.planning.capacity:find_capacity",
    check=_check_capacity,
)
OBJECTIVES = Registry(
    "objective",
    "partitioner.objectives",
    Objective,
    (THROUGHPUT, GPIPE, LATENCY, BATCH, PIPER, OPERATORS, CAPACITY),
)
DEFAULT = THROUGHPUT.name


def default_objective(method: object, split: object, options: Mapping[str, Any], trains: bool = True) -> str:
    """Return the name of the objective of a call of :func:`partitioner.solve` that names none.

    It is the makespan of a batch if `options` give a schedule and a number of microbatches, graphs with a
    backward pass (`trains`) or without one run under the schedule, and method and split leave it open; else
    the throughput.

    Examples
    --------
    >>> default_objective("auto", None, {"schedule": "1f1b", "microbatches": 8})
    'makespan'
    """
    schedule = options.get("schedule")
    timed = isinstance(schedule, str) and all(options.get(term) is not None for term in SIMULATED.needs)
    runs = timed and trains == (schedule != "inference")
    open_to_it = runs and method in ("auto", SIMULATED.method) and split in (None, *SIMULATED.splits)
    return SIMULATED.name if timed and open_to_it else DEFAULT


def objective_of(
    name: object, method: object = "auto", options: Mapping[str, Any] | None = None
) -> Objective:
    """Return the objective of a call: of two that share the name ``"makespan"``, the one that is meant.

    It is that of pipelines if their method, a schedule or a number of microbatches is asked for.

    Raises
    ------
    OptionError
        If no objective has that name.

    Examples
    --------
    >>> objective_of("makespan").splits, objective_of("makespan", options={"schedule": "1f1b"}).splits
    (('free',), ('chain',))
    """
    OBJECTIVES.check("objective", name)
    found = OBJECTIVES[str(name)]
    given = options or {}
    piped = method == SIMULATED.method or any(given.get(term) is not None for term in SIMULATED.needs)
    return SIMULATED if found is OPERATORS and piped else found


def objective_of_record(record: PlanRecord) -> str:
    """Return what a plan is evaluated for by default; for a simulated pipeline, its loads."""
    simulated = record.objective == OPERATORS.name and record.execution_order is None
    return DEFAULT if simulated or not record.objective else record.objective
