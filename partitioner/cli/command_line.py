"""The command line: ``partitioner solve``, ``evaluate``, ``simulate``, ``compare`` and the other commands."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from partitioner.base.errors import InfeasibleError, NoPlanFound, PartitionerError, one_of, shown
from partitioner.base.files import check_writable
from partitioner.base.safe_text import visible
from partitioner.cli.arguments import ALL, Command, command_parser, complete_if_asked, completing
from partitioner.cli.conflict import find_conflict
from partitioner.cli.diff import diff_plans
from partitioner.cli.explain import explain_plan
from partitioner.cli.export import export_plan
from partitioner.cli.inputs import read_constraints, read_planned, read_transfers, read_workload
from partitioner.cli.methods import compare_all, list_methods
from partitioner.cli.output import drop_output, open_standard_streams, refuse_own_inputs, saved, show
from partitioner.cli.plan import plan_layouts
from partitioner.cli.plot import run_plot
from partitioner.cli.profile import measure_model
from partitioner.cli.progress import ProgressLine
from partitioner.cli.recommend import recommend_pipelines
from partitioner.cli.report import write_report
from partitioner.cli.simulate import simulate_plan
from partitioner.cli.sizing import find_fewest, find_least_memory
from partitioner.cli.solve_arguments import expressible_split, solve_options
from partitioner.cli.sweep import run_sweep
from partitioner.cli.verify import verify_plan
from partitioner.cli.warm_up import compile_all
from partitioner.evaluation.solution import PlanRecord
from partitioner.formats.plan_record import evaluation_arguments, load_record
from partitioner.planning.certify import certify
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import objective_of, objective_of_record
from partitioner.planning.solve import solve
from partitioner.results.certificate import Certificate
from partitioner.workload.graph import Graph, NodeId
from partitioner.workload.workload import Workload

GIVEN = ("subgraphs_per_accelerator", "schedule", "microbatches", "max_time_per_sample")
DONE, BAD_INPUT, INFEASIBLE, NOTHING_FOUND, INTERRUPTED, UNREAD = 0, 2, 3, 4, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments
        The words after the program's name; by default those of the process.

    Returns
    -------
    int
        0 a plan or evaluation; 2 bad input or usage; 3 proven infeasible; 4 no plan found within
        the limits; 130 interrupted without a plan; 141 the reader of the output has closed it.
    """
    words = sys.argv[1:] if arguments is None else arguments
    parser = command_parser(COMMANDS, [*words, *([ALL] if completing() else [])])
    complete_if_asked(parser)
    _check_command(parser, words)
    options = parser.parse_args(arguments)
    try:
        refuse_own_inputs(options)
        options.run(options)
    except KeyboardInterrupt as interrupt:
        return _fail(str(interrupt) or "interrupted before there was a plan", INTERRUPTED)
    except InfeasibleError as error:
        return _fail("\n".join((f"infeasible: {error}", *error.remedies())), INFEASIBLE)
    except NoPlanFound as error:
        return _fail(str(error), NOTHING_FOUND)
    except PartitionerError as error:
        return _fail(str(error), BAD_INPUT)
    return DONE


def _check_command(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """End with exit code 2 if the first word is no command; a similar one is named."""
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        parser.error(f"command {shown(words[0])}: must be {one_of(words[0], COMMANDS)}")


def _fail(message: str, code: int) -> int:
    print(visible(f"partitioner: {message}"), file=sys.stderr)
    return code


def _solve(options: argparse.Namespace) -> None:
    check_writable(options.output)
    workload = read_workload(options)
    with ProgressLine() as line:
        plan = solve(
            workload.graph,
            workload.devices,
            on_progress=line.show,
            **expressible_split(options),
            **solve_options(options, workload),
        )
    plan = replace(plan, workload=workload.name)
    show(plan.to_json() if options.format == "json" else plan.summary(), *saved(plan, workload, options))


def _evaluate(options: argparse.Namespace) -> None:
    workload, plan = read_planned(options, load_record(options.plan))
    objective = options.objective or objective_of_record(plan)
    given = _asked(options, workload.graph, plan, objective)
    evaluation = evaluate(workload.graph, workload.devices, plan.placement, objective, **given)
    wanted = evaluation.feasible and options.bound is not None
    certificate = _certificate(workload, plan.placement, objective, options.bound, given) if wanted else None
    if options.format == "json":
        proven = {"bound": certificate.bound, "gap": certificate.gap} if certificate else {}
        show(json.dumps(evaluation.as_dict() | proven, indent=1))
    else:
        show(evaluation.summary())
        if certificate is not None:
            show(certificate.summary())


def _asked(options: argparse.Namespace, graph: Graph, plan: PlanRecord, objective: str) -> dict[str, Any]:
    """Return the arguments of the evaluation: those that the plan contains, changed by the options."""
    terms = objective_of(objective).terms
    known = evaluation_arguments(plan, graph, terms, {})
    constraints = read_constraints(options, graph, known.get("constraints"))
    given = {name: getattr(options, name) for name in GIVEN}
    given |= {"constraints": None if constraints.empty else constraints}
    if "transfers" in terms:
        given |= {"transfers": read_transfers(options, known.get("transfers"))}
    return evaluation_arguments(plan, graph, terms, given)


def _certificate(
    workload: Workload,
    placement: Mapping[NodeId, str],
    objective: str,
    time_limit: float,
    given: Mapping[str, Any],
) -> Certificate:
    with ProgressLine() as line:
        return certify(
            workload.graph,
            workload.devices,
            placement,
            objective,
            time_limit=time_limit,
            on_progress=line.show,
            **given,
        )


COMMANDS: dict[str, Command] = {
    "solve": _solve,
    "evaluate": _evaluate,
    "simulate": simulate_plan,
    "compare": compare_all,
    "recommend": recommend_pipelines,
    "plan": plan_layouts,
    "explain": explain_plan,
    "diff": diff_plans,
    "conflict": find_conflict,
    "fewest-devices": find_fewest,
    "least-memory": find_least_memory,
    "sweep": run_sweep,
    "plot": run_plot,
    "report": write_report,
    "export": export_plan,
    "methods": list_methods,
    "profile": measure_model,
    "verify": verify_plan,
    "warm-up": compile_all,
}


def run() -> NoReturn:
    """Run the ``partitioner`` program; a closed pipe of its output is no error."""
    open_standard_streams()
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        code = UNREAD
    except OSError as error:
        if error.filename is not None:  # not of a print
            raise
        drop_output()
        code = _fail(f"standard output: cannot be written: {error.strerror}", BAD_INPUT)
    except KeyboardInterrupt:
        drop_output()
        code = _fail("interrupted", INTERRUPTED)
    sys.exit(code)
