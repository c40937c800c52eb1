"""Random pipelines as the method is given them."""

from __future__ import annotations

from partitioner.methods.dp.forms import within_groups
from partitioner.methods.dp.pipeline import best_in_form
from partitioner.methods.method import Outcome, Settings
from partitioner.problem.fit import companions, fit
from partitioner.problem.goal import Goal
from partitioner.problem.variants import PipelineProblem
from partitioner.workload.pipeline_settings import Regime
from partitioner.workload.resolved_constraints import demands_of
from tests.contracted import contract_to
from tests.measures import MEASURES
from tests.oracle_pipelines import best_pipeline
from tests.random_pipelines import Case


def problem_of(case: Case) -> PipelineProblem:
    """The contracted problem of a case, with its extension even where nothing is asked for."""
    demands = demands_of(case.graph, case.devices, case.constraints)
    regime = Regime(case.replicas, case.schedule, case.microbatches, case.constraints)
    graph = fit(case.graph, case.devices, demands, case.schedule is not None)
    classes = (companions(demands),)
    goal = Goal(measure=MEASURES[case.objective], classes=classes, regime=regime, demands=demands)
    return contract_to(PipelineProblem, graph, case.devices, goal)


def solved(case: Case, settings: Settings | None = None) -> Outcome:
    """The best pipeline of a case that is of the form that tables hold."""
    return best_in_form(within_groups(problem_of(case)), settings or Settings())


def best_value(case: Case) -> float | None:
    """What the oracle says."""
    return best_pipeline(
        case.graph,
        case.devices,
        case.constraints,
        case.replicas,
        case.schedule,
        case.microbatches,
        case.objective,
    )
