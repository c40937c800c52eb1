"""HEFT on the example of its paper, and list schedulers that users compose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import DeviceKind, Devices, Graph, OptionError, Placer, solve
from partitioner.methods.placers.engine import place_in_order
from partitioner.methods.placers.ranks import PRIORITIES, ordered, upward_rank
from partitioner.methods.placing import Choice
from partitioner.problem.goal import Goal
from partitioner.problem.measure import Measure
from partitioner.problem.tasks import Tasks
from partitioner.problem.variants import OperatorNodes
from tests.contracted import contract_to
from tests.random_tasks import random_order, task_cases

TIMES = {
    "p_a": [14, 13, 11, 13, 12, 13, 7, 5, 18, 21],
    "p_b": [16, 19, 13, 8, 13, 16, 15, 11, 12, 7],
    "p_c": [9, 18, 19, 17, 10, 9, 11, 14, 20, 16],
}
EDGES = {
    (1, 2): 18, (1, 3): 12, (1, 4): 9, (1, 5): 11, (1, 6): 14, (2, 8): 19, (2, 9): 16, (3, 7): 23,
    (4, 8): 27, (4, 9): 23, (5, 9): 13, (6, 8): 15, (7, 10): 17, (8, 10): 11, (9, 10): 13,
}  # fmt: skip
RANKS = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
EXAMPLE = pt.Graph.from_arrays(TIMES, list(EDGES), list(EDGES.values()), ids=range(1, 11))
THREE = pt.Devices(tuple(pt.DeviceKind(name, 1) for name in TIMES))


def example_tasks() -> Tasks:
    tasks = contract_to(
        OperatorNodes, EXAMPLE, THREE, Goal(Measure.LAST_OPERATOR, "free", transfers=pt.Transfers())
    ).tasks
    return tasks


def test_ranks_are_the_published_ones() -> None:
    """Topcuoglu, Hariri and Wu (2002), Table 1: mean times and links of slope 1."""
    assert upward_rank(example_tasks()) == pytest.approx(RANKS, abs=5e-4)


def test_the_schedule_is_the_published_one() -> None:
    """Figure 3a: length 80; 1, 3, 5 and 7 on the third processor, 4, 6, 9 and 10 on the second."""
    plan = pt.solve(EXAMPLE, THREE, "makespan", method="heft")
    assert plan.value == plan.statistics["estimate"] == 80 and plan.schedule is not None
    runs = {run.nodes[0]: (run.device, run.start, run.finish) for run in plan.schedule.entries}
    assert runs == {
        1: ("p_c0", 0, 9), 2: ("p_a0", 27, 40), 3: ("p_c0", 9, 28), 4: ("p_b0", 18, 26),
        5: ("p_c0", 28, 38), 6: ("p_b0", 26, 42), 7: ("p_c0", 38, 49), 8: ("p_a0", 57, 62),
        9: ("p_b0", 56, 68), 10: ("p_b0", 73, 80),
    }  # fmt: skip


def test_heft_is_the_composed_scheduler_by_default() -> None:
    for case in task_cases(0, 30, contention=True):
        plans: list[object] = []
        for method in ("heft", "list"):
            try:
                plans.append(
                    pt.solve(case.graph, case.devices, "makespan", method=method, transfers=case.transfers)
                )
            except (pt.NoPlanFound, pt.InfeasibleError) as error:
                plans.append(error)
        first, second = (getattr(plan, "placement", type(plan)) for plan in plans)
        assert first == second


def earliest_finish(choice: Choice) -> int:
    return int(np.argmin(choice.finish))


def earliest_start(choice: Choice) -> int:
    return int(np.argmin(choice.start))


@pytest.mark.parametrize("choose", [earliest_finish, earliest_start])
def test_functions_of_the_users_choose_as_the_compiled_ones(choose: Any) -> None:
    """The same devices, starts and estimate, on random tasks, orders and rules."""
    for case in task_cases(5000, 200):
        order, reserve = random_order(case), bool(case.rng.random() < 0.5)
        insertion = bool(case.rng.random() < 0.5)
        mine, compiled = (
            place_in_order(case.tasks, order, rule, insertion=insertion, reserve=reserve)
            for rule in (choose, choose.__name__)
        )
        assert (mine is None) == (compiled is None)
        if mine is not None and compiled is not None:
            assert mine.device.tolist() == compiled.device.tolist() and mine.estimate == compiled.estimate
            assert mine.order.tolist() == compiled.order.tolist()


def test_a_chooser_is_given_what_fits_and_the_device_before() -> None:
    """Memory 2 on each device, nodes of 1: the third node does not fit where two are; all go round."""
    seen = []

    def next_one(choice: Choice) -> int:
        seen.append((choice.task, choice.fits.tolist(), choice.start.tolist(), choice.previous))
        after = (choice.previous + 1) % 2
        return after if choice.fits[after] else choice.previous

    graph = pt.Graph.from_arrays({"accelerator": [1.0] * 4}, size=1.0)
    placer = pt.Placer("topological", next_one, insertion=False)
    plan = pt.solve(graph, pt.Devices.accelerated(2, memory=2), "makespan", method="list", placer=placer)
    assert plan.value == 2 and plan.options["placer"]["choose"] == "next_one"
    assert seen == [
        (0, [True, True], [0, 0], 0), (1, [True, True], [0, 1], 1),
        (2, [True, True], [1, 1], 0), (3, [True, False], [1, np.inf], 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", sorted(PRIORITIES))
def test_priorities_may_be_names_or_functions(name: str) -> None:
    """Of the ready tasks the most urgent comes first; the function of a name does the same as the name."""
    plans = [
        pt.solve(EXAMPLE, THREE, "makespan", method="list", placer=pt.Placer(priority))
        for priority in (name, PRIORITIES[name])
    ]
    assert plans[0].placement == plans[1].placement
    tasks = example_tasks()
    priority = PRIORITIES[name](tasks)
    order = ordered(tasks, priority).tolist()
    for i, v in enumerate(order):
        ready = [w for w in order[i:] if set(tasks.before.row(w).tolist()) <= set(order[:i])]
        assert (-priority[v], v) == min((-priority[w], w) for w in ready)


@pytest.mark.parametrize(
    ("placer", "message"),
    [
        (pt.Placer(priority="rank"), "priority of placer = 'rank': must be one of upward_rank"),
        (pt.Placer(choose="best"), "choose of placer = 'best': must be one of earliest_finish"),
        (pt.Placer(lambda tasks: np.zeros(3)), "priority of placer must return 10 numbers"),
        (pt.Placer(lambda tasks: np.full(10, np.nan)), "priority of placer must return 10 numbers"),
        (pt.Placer(lambda tasks: ["a"] * 10), "priority of placer must return 10 numbers"),  # type: ignore
        (pt.Placer(choose=lambda choice: 3), "choose of placer returned 3: must return the number"),
        (pt.Placer(choose=lambda choice: -1), "choose of placer returned -1"),
        (pt.Placer(choose=lambda choice: True), "choose of placer returned True"),
        (pt.Placer(choose=lambda choice: 1.0), "choose of placer returned 1.0"),  # type: ignore
        (pt.Placer(choose=lambda choice: None), "choose of placer returned None"),  # type: ignore
        ("heft", "placer = 'heft': must be a Placer"),
    ],
)
def test_bad_parts_are_named(placer: Any, message: str) -> None:
    with pytest.raises(pt.OptionError) as caught:
        pt.solve(EXAMPLE, THREE, "makespan", method="list", placer=placer)
    assert message in str(caught.value)


def test_a_device_where_the_task_does_not_fit_may_not_be_chosen() -> None:
    graph = pt.Graph.from_arrays({"accelerator": [1.0] * 2}, size=1.0)
    with pytest.raises(
        pt.OptionError, match="returned 0: must return the number of a device on which task 1"
    ):
        pt.solve(
            graph,
            pt.Devices.accelerated(2, memory=1),
            "makespan",
            method="list",
            placer=pt.Placer(choose=lambda choice: 0),
        )


def test_a_priority_that_is_neither_a_name_nor_a_function_is_refused() -> None:
    with pytest.raises(pt.OptionError, match="must be a name or a function"):
        pt.Placer(priority=["rank"])  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["priority", "choose"])
def test_an_exception_of_a_users_rule_is_an_error_about_the_placer(rule: str) -> None:
    graph = Graph.from_arrays({"gpu": [1.0, 2.0]}, [(0, 1)], 0.5)
    rules: Any = {rule: len}
    placer = Placer(**rules)
    with pytest.raises(OptionError, match=f"{rule} of placer must not raise an exception: TypeError"):
        solve(graph, Devices((DeviceKind("gpu", 2),)), "makespan", method="list", placer=placer)
