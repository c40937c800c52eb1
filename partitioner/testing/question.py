"""A question to a method: a workload and the options of a call; and the method's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from partitioner.base.errors import (
    BackendUnavailable,
    ContradictionError,
    InfeasibleError,
    NoPlanFound,
    OptionError,
    WorkloadError,
)
from partitioner.evaluation.shape import is_ordered
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.methods.info import MethodInfo
from partitioner.planning.objectives import Objective
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.schedule.simulation import usual_schedule
from partitioner.testing.failures import MissingPlan, UnexpectedFailure, WrongInfeasibility, WrongPlan
from partitioner.testing.oracle import value_of
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph

TOLERANCE = 1e-9
MICROBATCHES = 3


@dataclass(frozen=True)
class MethodAnswer:
    """The result of a call: a plan, or why there is none.

    Parameters
    ----------
    plan
        The plan; None if there is none.
    reason
        ``"infeasible"``, ``"no plan"``, ``"refused"`` or ``"interrupted"``; empty with a plan.
    words
        The message of the error; empty with a plan.
    """

    plan: Plan | None
    reason: str = ""
    words: str = ""


@dataclass(frozen=True)
class Question:
    """A workload, and the call of a method that is checked on it.

    Parameters
    ----------
    info, objective, split, seed
        The method's record, the objective, the split and the seed of the call.
    graph, devices
        The workload.
    check
        The name of the check that asks the question.
    options
        Further options of the call.
    """

    info: MethodInfo
    objective: Objective
    split: str
    seed: int
    graph: Graph
    devices: Devices
    check: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def line(self) -> str:
        """The call that repeats the check of this question."""
        given = "".join(f", {name}={value!r}" for name, value in self.options.items())
        asked = f"{self.info.name!r}, [{self.objective.name!r}], cases=1, seed={self.seed}{given}"
        return f"partitioner.testing.{self.check}({asked})"

    @property
    def terms(self) -> dict[str, Any]:
        """The options that the objective needs, for the call and for the evaluation."""
        known = {"microbatches": MICROBATCHES, "schedule": usual_schedule(self.graph)}
        return {name: value for name, value in known.items() if name in self.objective.needs}

    def ask(self, **further: Any) -> MethodAnswer:
        """Return the method's answer.

        Raises
        ------
        UnexpectedFailure, WrongPlan
            If the method raises an error that no method may raise, or the evaluator contradicts it.
        BackendUnavailable
            If the method needs a solver that is not installed.
        """
        try:
            return MethodAnswer(self._solved(**further))
        except InfeasibleError as error:
            return MethodAnswer(None, "infeasible", str(error))
        except NoPlanFound as error:
            return MethodAnswer(None, "no plan", str(error))
        except (OptionError, WorkloadError) as error:
            return MethodAnswer(None, "refused", str(error))
        except KeyboardInterrupt:
            return MethodAnswer(None, "interrupted", "interrupted before there was a plan")
        except BackendUnavailable:
            raise
        except ContradictionError as error:
            raise WrongPlan(self.say(f"is contradicted: {error}"), self.line) from error
        except Exception as error:
            raise UnexpectedFailure(self.say(f"raised {error!r}"), self.line) from error

    def say(self, what: str) -> str:
        """Return a message that names method, objective and split."""
        return f"method {self.info.name}, objective {self.objective.name}, {self.split} split: {what}"

    def check_sound(self, plan: Plan) -> None:
        """Evaluate a plan and compare the value.

        Raises
        ------
        WrongPlan
            If the plan breaks a rule, has another shape, or does not have the value that it states.
        """
        under = Terms(split=self.split, **self.terms)
        value = value_of(self.graph, self.devices, self.objective, self._solution(plan), under)
        if abs(value - plan.value) > TOLERANCE * max(1.0, abs(value)):
            words = f"the plan states {plan.value!r}, the evaluator {value!r} (infinity: it breaks a rule)"
            raise WrongPlan(self.say(words), self.line)

    def check_no_plan(self, answer: MethodAnswer) -> None:
        """Raise for an answer without a plan although there is one.

        Raises
        ------
        WrongInfeasibility, MissingPlan
            If the answer claims a proof, or `may_miss` is not set in the method's record.
        """
        if answer.reason == "infeasible":
            words = f"reports that there is no plan, but there is one; its message: {answer.words}"
            raise WrongInfeasibility(self.say(words), self.line)
        if not self.info.may_miss:
            words = f"finds no plan, but there is one; its message: {answer.words}"
            raise MissingPlan(self.say(words), self.line)

    def _solved(self, **further: Any) -> Plan:
        call: Callable[..., Plan] = solve
        given = {"seed": self.seed, **self.terms, **self.options, **further}
        name, objective = self.info.name, self.objective.name
        return call(self.graph, self.devices, objective, method=name, split=self.split, **given)

    def _solution(self, plan: Plan) -> Solution:
        """Return the solution of a plan, with those of its parts that the objective depends on."""
        record, terms = plan.record, self.objective.terms
        known = {name: getattr(record, name) for name in ("replicas", "subgraphs", "execution_order")}
        order = record.order if "order" in terms and is_ordered(self.split) else None
        parts = {name: value for name, value in known.items() if name in terms and value}
        return Solution(record.placement, order=order, **parts)
