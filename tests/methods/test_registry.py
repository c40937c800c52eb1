"""Every registered method exists, keeps its word on small graphs, and refuses what it cannot do."""

from __future__ import annotations

import numpy as np
import pytest

from partitioner import BackendUnavailable, InfeasibleError, NoPlanFound, OptionError, WorkloadError, solve
from partitioner.methods.registry import METHODS, choose
from partitioner.planning.objectives import THROUGHPUT
from tests.oracle import best_chain_value
from tests.random_workloads import uneven_workload


@pytest.mark.parametrize(("first", "count"), [(50_000, 12), pytest.param(50_012, 88, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, i in METHODS.items()
        if "chain" in i.splits
        and "throughput" in i.objectives
        and name != "virtual_stages"  # needs a schedule
    ],
)
def test_plans_are_feasible_and_bounds_true(name: str, first: int, count: int) -> None:
    """No method is below the oracle, no bound above it."""
    plans = 0
    for seed in range(first, first + count):
        graph, devices = uneven_workload(np.random.default_rng(seed), 8, 3)
        best = best_chain_value(graph, devices)
        try:
            plan = solve(graph, devices, method=name)
        except NoPlanFound:
            continue
        except OptionError:
            assert name == "pipedream"  # for a graph that one kind of device may not run
            continue
        except (InfeasibleError, WorkloadError):
            assert best is None
            continue
        assert best is not None
        assert plan.bound <= best * (1 + 1e-9) + 1e-12
        assert best <= plan.value * (1 + 1e-9) + 1e-12
        plans += 1
    assert plans > count / 10


def test_auto_takes_the_exact_program() -> None:
    """The automatic choice is the method with the strongest guarantee."""
    automatic = THROUGHPUT.automatic("chain", ())
    assert choose("auto", "throughput", "chain", automatic=automatic).name == "dp"


@pytest.mark.parametrize(
    ("words", "error", "text"),
    [
        (
            ("gurobi", "throughput", "chain", "auto"),
            OptionError,
            "method = 'gurobi': must be one of auto, dp",
        ),
        (("dp", "latency", "chain", "auto"), OptionError, "objective 'latency' is not available"),
        (("dp", "throughput", "free", "auto"), OptionError, "split 'free' is not available"),
        (("dp", "throughput", "chain", "gurobi"), BackendUnavailable, "does not run on 'gurobi'"),
    ],
)
def test_refusals_name_the_alternative(
    words: tuple[str, str, str, str], error: type[Exception], text: str
) -> None:
    """What cannot be done is refused with what can."""
    with pytest.raises(error, match=text):
        choose(*words)
