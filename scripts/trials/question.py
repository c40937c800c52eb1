"""One question to the program with an oracle's answer: what is wrong with what the program says?"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import partitioner as pt
from trials.campaign import Trial
from trials.source import smallest, workload_source

RELATIVE, ABSOLUTE = 1e-9, 1e-12
TERMS = ("schedule", "microbatches", "constraints")  # options of `solve` that `evaluate` takes too


@dataclass(frozen=True)
class Question:
    """A call of `solve`, and what it is held against.

    Parameters
    ----------
    row
        The row of the table.
    graph, devices, objective, options
        The call.
    oracle
        The optimum; infinity if there is no plan.
    worth
        The value of a plan by an opinion that is not the evaluator's; None to go without.
    exact
        Whether the method must end with a proof.
    narrow
        Whether plans that the oracle does not know may be better than its optimum: they are held against the
        evaluator alone (`accepted.py` enumerates them).
    """

    row: str
    graph: pt.Graph
    devices: pt.Devices
    objective: str
    options: Mapping[str, Any]
    oracle: Callable[[Question], float]
    worth: Callable[[Question, pt.Plan], float] | None = None
    exact: bool = True
    narrow: bool = False

    def solved(self) -> pt.Plan:
        """The program's answer."""
        return pt.solve(self.graph, self.devices, self.objective, **self.options)

    def source(self) -> str:
        """Statements that ask the question again."""
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        imports = "from partitioner import Constraints, Transfers\n"
        call = f"plan = pt.solve(graph, devices, {self.objective!r}{given})"
        return f"{imports}{workload_source(self.graph, self.devices)}\n{call}\nprint(plan.summary())"


def tried(question: Question, command: str) -> Trial:
    """Ask, judge, and reduce the graph if the answer is wrong."""
    outcome, wrong = judged(question)
    if not wrong:
        return Trial(question.row, outcome)
    less = smallest(question.graph, lambda graph: bool(judged(replace(question, graph=graph))[1]))
    reduced = replace(question, graph=less)
    return Trial(question.row, outcome, wrong, f"{command}\n# {judged(reduced)[1]}\n{reduced.source()}")


def judged(question: Question) -> tuple[str, str]:
    """How the call ended, and what is wrong with that; empty if nothing is."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # `endurance.py` counts descriptors
        outcome, wrong = _ended(question)
    return outcome, wrong or "; ".join(f"a warning: {warning.message}" for warning in shown)


def _ended(question: Question) -> tuple[str, str]:
    try:
        plan = question.solved()
    except pt.ContradictionError as error:
        return "contradiction", str(error)
    except pt.WorkloadError as error:
        return "refused", "" if _answer(question) == math.inf else f"refused a sound workload: {error}"
    except pt.InfeasibleError:
        best = _answer(question)
        return "infeasible", "" if best == math.inf else f"infeasible is said, a plan of {best!r} is known"
    except pt.OptionError:
        return "option refused", ""
    except pt.NoPlanFound as error:
        return "no plan", f"an exact method found no plan: {error}" if question.exact else ""
    except Exception as error:  # whatever escapes is what these trials look for
        return "exception", f"{type(error).__name__}: {error}"
    return plan.status, _wrong_plan(question, plan)


def _answer(question: Question) -> float:
    try:
        return question.oracle(question)
    except pt.WorkloadError:
        return math.inf


def _wrong_plan(question: Question, plan: pt.Plan) -> str:
    best = _answer(question)
    room = RELATIVE * abs(best) + ABSOLUTE if best < math.inf else 0.0
    if question.narrow and plan.value < best - room:
        return _wrong_value(question, plan)
    if best == math.inf:
        return f"a plan of {plan.value!r} where there is none"
    if plan.value < best - room:
        return f"the value {plan.value!r} is below the optimum {best!r}"
    if plan.bound > best + room:
        return f"the bound {plan.bound!r} is above the optimum {best!r}"
    if plan.status == "optimal" and plan.value > best + room:
        return f"{plan.value!r} is called optimal, the optimum is {best!r}"
    if question.exact and plan.status != "optimal":
        return f"an exact method proves nothing: {plan.value!r}, {plan.stop_reason}, the optimum is {best!r}"
    return _wrong_value(question, plan)


def _wrong_value(question: Question, plan: pt.Plan) -> str:
    worth = _accepted_value if question.narrow else question.worth
    value = plan.value if worth is None else worth(question, plan)
    apart = not abs(value - plan.value) <= RELATIVE * abs(value) + ABSOLUTE
    return f"the value {plan.value!r} is {value!r} by another opinion" if apart else ""


def _accepted_value(question: Question, plan: pt.Plan) -> float:
    """The value that `evaluate` finds, infinity if it does not accept the plan."""
    terms = {name: question.options[name] for name in TERMS if name in question.options}
    found = pt.evaluate(question.graph, question.devices, plan.record, question.objective, **terms)
    return found.value if found.feasible else math.inf
