"""The smallest conflict is that of a search through all sets of demands."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.analysis.explanations.conflict import smallest_conflict
from partitioner.workload.constraints import NONE
from tests.oracle import best_values
from tests.random_workloads import random_workload


@pytest.mark.parametrize("seed", range(100))
def test_of_random_families_of_conflicts(seed: int) -> None:
    """A family of sets that conflict, given by smallest ones."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 7))
    conflicts = [
        frozenset(np.flatnonzero(rng.random(count) < 0.5).tolist()) for _ in range(int(rng.integers(1, 5)))
    ]
    conflicts = [each for each in conflicts if each] or [frozenset(range(count))]
    found, proven = smallest_conflict(count, lambda kept: not any(each <= kept for each in conflicts))
    assert proven and any(each <= found for each in conflicts)
    assert len(found) == min(map(len, conflicts))


def test_what_is_not_known_is_said() -> None:
    """Without an answer, the set may be larger than necessary, and that it is the smallest is not claimed."""
    found, proven = smallest_conflict(3, lambda kept: None if kept == {1} else not kept >= {1})
    assert 1 in found and not proven


def demanded(seed: int) -> tuple[pt.Graph, pt.Devices, pt.Constraints]:
    """A small random workload with tight memory and a few constraints."""
    rng = np.random.default_rng(seed)
    graph, devices = random_workload(rng, 5, 3)
    kinds = [kind.name for kind in devices.kinds if kind.count]
    given: dict[str, Any] = {}
    if rng.random() < 0.6:
        given["pin"] = {int(rng.integers(len(graph))): str(rng.choice(kinds))}
    if rng.random() < 0.5:
        given["stages"] = int(rng.integers(1, 4))
    if rng.random() < 0.5:
        given["nodes_per_stage"] = (int(rng.integers(1, 4)), None)
    if rng.random() < 0.3:
        given["use_all_devices"] = True
    tight = tuple(
        replace(kind, memory=float(rng.integers(0, 6))) if rng.random() < 0.6 else kind
        for kind in devices.kinds
    )
    return graph, replace(devices, kinds=tight), pt.Constraints(**given)


def has_placement(
    graph: pt.Graph, devices: pt.Devices, constraints: pt.Constraints, kept: tuple[str, ...]
) -> bool:
    """Whether a chain obeys the demands that are kept; all placements are tried."""
    kinds = []
    for kind in devices.kinds:
        memory = kind.memory if f"memory {kind.name}" in kept else None
        free = kind.count and f"number {kind.name}" not in kept
        kinds.append(replace(kind, memory=memory, count=max(kind.count, len(graph)) if free else kind.count))
    known = {name: value for name, value in constraints.as_dict().items() if name in kept}
    if any(kind.count and f"number {kind.name}" not in kept for kind in devices.kinds):
        known.pop("use_all_devices", None)
    fewer = replace(devices, kinds=tuple(kinds))
    return best_values(graph, fewer, constraints=pt.Constraints(**known))["chain"] is not None


def words_of(demand: str, devices: pt.Devices, constraints: pt.Constraints) -> str:
    """The start of the words in which a conflict names a demand."""
    what, _, name = demand.partition(" ")
    if what in ("memory", "number"):
        each = "the memory of each device" if what == "memory" else "the number of devices"
        return f"{each} of kind {name} ("
    return demand if demand != "pin" else f"pin of {next(iter(constraints.pin))!r}"


def compare_with_all_sets(seed: int) -> str:
    """Compare the conflict of a random question with all sets of demands; return what the case was about."""
    graph, devices, constraints = demanded(seed)
    try:
        pt.Workload(graph, devices)
    except pt.WorkloadError:
        return "refused"
    names = [f"memory {kind.name}" for kind in devices.kinds if kind.count and kind.memory is not None]
    names += [f"number {kind.name}" for kind in devices.kinds if kind.count]
    names += list(constraints.as_dict())
    found = pt.conflicting_demands(graph, devices, constraints=constraints, time_limit=None)
    if found.plan is not None:
        assert has_placement(graph, devices, constraints, tuple(names)), seed
        return "feasible"
    if not found.demands:
        assert not has_placement(graph, devices, NONE, ()), seed
        return "never"
    sizes = range(len(names) + 1)
    smallest = next(
        size
        for size in sizes
        if any(not has_placement(graph, devices, constraints, kept) for kept in combinations(names, size))
    )
    assert found.smallest and len(found.demands) == smallest, (seed, found.demands)
    chosen = [
        each
        for each in names
        if any(demand.startswith(words_of(each, devices, constraints)) for demand in found.demands)
    ]
    assert len(chosen) == smallest and not has_placement(graph, devices, constraints, tuple(chosen)), seed
    return f"{smallest} demands"


@pytest.mark.parametrize("seed", range(4))
def test_of_random_questions(seed: int) -> None:
    compare_with_all_sets(seed)


def test_no_number_of_devices_is_offered_with_which_some_would_stay_idle() -> None:
    """The node may run on kind a only; with one device of each kind, that of kind b cannot be used."""
    graph = pt.Graph.from_arrays({"a": [1.0], "b": [1.0]}, [], allowed={"a": [True], "b": [False]})
    devices = pt.Devices((pt.DeviceKind("a", 1), pt.DeviceKind("b", 1)))
    found = pt.conflicting_demands(graph, devices, constraints=pt.Constraints(use_all_devices=True))
    assert found.remedies == (
        "With 0 devices of kind b in place of 1 there is a plan; fewer are proven not to suffice.",
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gap": 0.1}, "gap = 0.1: has no effect here, where any plan will do"),
        ({"constraints": {"stages": 3}}, "must be a partitioner.Constraints"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], words: str) -> None:
    graph = pt.Graph.from_arrays({"gpu": [1.0]}, [])
    with pytest.raises(pt.PartitionerError, match=re.escape(words)):
        pt.conflicting_demands(graph, pt.Devices((pt.DeviceKind("gpu", 1),)), **options)
