"""Mean times by operation and kind: what they are, what is missing, and when they are stable."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitioner import Graph, WorkloadError
from partitioner.estimation import OperationTimes, is_stable, operation_times

NAMES, KINDS = ["conv", "relu", "add"], ["gpu", "cpu"]


@given(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(KINDS), st.floats(0, 1e6)), max_size=20))
def test_means_of_what_was_measured(runs: list[tuple[str, str, float]]) -> None:
    model = operation_times(runs, NAMES, KINDS)
    for kind in KINDS:
        for i, name in enumerate(NAMES):
            times = [t for operation, where, t in runs if (operation, where) == (name, kind)]
            assert model.time[kind][i] == pytest.approx(np.mean(times) if times else 0.0)
            assert ((name, kind) in model.unmeasured) == (not times)


def test_a_graph_takes_the_times() -> None:
    model = operation_times([("conv", "gpu", 2.0), ("relu", "cpu", 3.0)], NAMES, KINDS)
    graph = Graph.from_arrays(model.time, ids=NAMES)
    assert graph.time.tolist() == [[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]]


def test_stable_when_no_mean_changes_much() -> None:
    def times(*gpu: float) -> OperationTimes:
        return OperationTimes({"gpu": np.array(gpu)}, ())

    assert is_stable(times(1.0, 2.0), times(1.04, 1.92))
    assert not is_stable(times(1.0, 2.0), times(1.06, 2.0))
    assert is_stable(times(1.0, 2.0), times(1.06, 2.0), tolerance=0.1)
    assert is_stable(times(1.0, 0.0), times(1.0, 0.0))
    assert not is_stable(times(1.0, 0.0), times(1.0, 0.1), tolerance=10.0)
    with pytest.raises(WorkloadError, match="kinds"):
        is_stable(times(1.0), OperationTimes({"cpu": np.array([1.0])}, ()))
    with pytest.raises(WorkloadError, match="must be as many"):
        is_stable(times(1.0), times(1.0, 2.0))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (("pool", "gpu", 1.0), "measurement 0: ('pool', 'gpu', 1.0): must be one of `operations`"),
        (("conv", "tpu", 1.0), "measurement 0"),
        (("conv", "gpu"), "measurement 0"),
        (7, "measurement 0: 7"),
        (("conv", "gpu", -1.0), "time = -1.0: must be finite and at least 0"),
        (("conv", "gpu", "slow"), "must be numbers"),
    ],
)
def test_errors_name_the_measurement(run: Any, words: str) -> None:
    with pytest.raises(WorkloadError) as error:
        operation_times([run], NAMES, KINDS)
    assert words in str(error.value)
