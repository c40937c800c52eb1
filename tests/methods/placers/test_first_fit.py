"""Under tight memory every placer returns a plan where one exists, and a proof where none does."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, Graph, InfeasibleError, WorkloadError, evaluate, solve
from partitioner.methods.method import Settings
from partitioner.methods.placers.first_fit import packed
from partitioner.methods.placers.portfolio import placers
from partitioner.problem.tasks import tasks_of
from partitioner.workload.topological import topological
from partitioner.workload.transfers import Transfers


def tight(seed: int) -> tuple[Graph, Devices]:
    """A workload of 4 to 8 nodes, some of them in colour classes, that fill the memory almost."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    edges = [(u, v) for u in range(n) for v in range(u + 1, n) if rng.random() < 0.3]
    size = rng.integers(1, 9, n).astype(float)
    color = [int(rng.integers(n)) if rng.random() < 0.5 else None for _ in range(n)]
    may = rng.random((2, n)) < 0.85
    may[0] |= ~may.any(axis=0)
    count = (int(rng.integers(1, 3)), int(rng.integers(1, 3)))
    room = np.ceil(size.sum() * rng.uniform(1.0, 1.15) * rng.dirichlet((20.0, 20.0)) / count)
    graph = Graph.from_arrays(
        {"gpu": rng.integers(0, 5, n).astype(float), "tpu": rng.integers(0, 5, n).astype(float)},
        edges,
        cost=1.0,
        size=size,
        color=color,
        allowed={"gpu": may[0], "tpu": may[1]},
    )
    kinds = (DeviceKind("gpu", count[0], float(room[0])), DeviceKind("tpu", count[1], float(room[1])))
    return graph, Devices(kinds)


def fits(graph: Graph, devices: Devices) -> bool:
    """Whether some placement keeps to the memory, by trying all."""
    names = devices.names
    where = [devices.kind_of(name) for name in names]
    kind = np.array([found[0] for found in where if found is not None])
    limit = np.array([devices.kinds[k].memory_limit for k in kind.tolist()])
    groups: dict[object, list[int]] = {}
    for i, color in enumerate(graph.color.tolist()):
        groups.setdefault(("class", color) if color >= 0 else i, []).append(i)
    members = list(groups.values())
    size = np.array([graph.size[each].sum() for each in members])
    runs = [np.asarray(graph.allowed[:, each].all(axis=1)) for each in members]
    may = [np.flatnonzero(each[kind]).tolist() for each in runs]
    return any(
        np.less_equal(np.bincount(place, size, len(names)), limit).all()
        for place in map(np.array, product(*may) if all(may) else ())
    )


def every_placer(seeds: range) -> int:
    """How many plans were found, after the check that each is right."""
    plans = 0
    for seed in seeds:
        graph, devices = tight(seed)
        possible = fits(graph, devices)
        for method in (*placers(), "portfolio"):
            try:
                plan = solve(graph, devices, "makespan", method=method)
            except (InfeasibleError, WorkloadError):
                assert not possible, (seed, method)
                continue
            assert possible, (seed, method)
            order = plan.execution_order
            assert evaluate(graph, devices, plan.placement, "makespan", execution_order=order).feasible
            plans += 1
    return plans


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 2), *(pytest.param(*some, marks=pytest.mark.slow) for some in ((2, 10), (100, 90)))],
)
def test_every_placer_returns_a_plan_where_one_fits(first: int, count: int) -> None:
    assert every_placer(range(first, first + count)) > count * 10 / 3


def test_packing_finds_what_fits_and_refutes_the_rest() -> None:
    found = refuted = 0
    for seed in range(40):
        graph, devices = tight(1000 + seed)
        group = np.where(graph.color < 0, len(graph) + np.arange(len(graph)), graph.color)
        group = np.unique(group, return_inverse=True)[1]
        tasks = tasks_of(graph, devices, group, Transfers(), topological(graph.edges, len(graph)))
        home, impossible = packed(tasks, Settings())
        assert (home is not None) == fits(graph, devices) == (not impossible)
        found += home is not None
        refuted += impossible
    assert min(found, refuted) >= 3


def test_a_plan_of_the_packer_says_so() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 5}, [], size=[2.0, 2.0, 2.0, 3.0, 3.0])
    plan = solve(graph, Devices.accelerated(2, memory=6.0), "makespan", method="heft")
    assert any("packed into the devices" in note for note in plan.notes)
