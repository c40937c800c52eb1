"""Bounds on makespans that know fill and drain are never above the best of all pipelines, simulated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

from partitioner import Constraints, DeviceKind, Devices, Graph, PartitionerError, solve
from partitioner.methods.bounds.relaxation import relax
from partitioner.methods.dp import reduced
from partitioner.methods.dp.bracket import ThresholdRule
from partitioner.methods.dp.reduced import Reduced
from partitioner.methods.method import Part, Settings
from partitioner.methods.pipeline_bound import fill_drain as module
from partitioner.methods.pipeline_bound._fill_drain_core import LONGEST
from partitioner.methods.pipeline_bound.fill_drain import FillDrain, FillDrainModel, LimitBracket
from partitioner.methods.pipeline_bound.paths import EFFORT, STREAM, held_of, levels_of, spine_of
from partitioner.methods.pipeline_bound.series import busiest_bound, least_outside, series_bound
from partitioner.methods.registry import METHODS
from partitioner.methods.virtual_stages.bound_arcs import _transfers as transfers_between
from partitioner.methods.virtual_stages.cut_costs import CutCosts, cuts_of
from partitioner.planning.evaluate import evaluate
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.options import read_options
from partitioner.planning.request import Request
from partitioner.problem.variants import PipelineProblem
from partitioner.schedule import simulate
from partitioner.workload.constraints import NONE
from partitioner.workload.workload import Workload
from tests.oracle_pipelines import atoms, chains

TRAINING = ("gpipe", "1f1b", "1f1b_async")
TIMES = np.array([0.0, 0.5, 1.0, 1.0, 2.0, 3.5])
COSTS = np.array([0.0, 0.0, 0.25, 0.5, 1.5])
Draw = Callable[[np.random.Generator], "Asked"]
ABOVE = 1.4  # of the best makespan: up to there a bound that is wrong could rise


@dataclass(frozen=True)
class Asked:
    """A workload and the pipeline that is asked for."""

    graph: Graph
    devices: Devices
    schedule: str
    microbatches: int
    replicas: int = 1
    equal: bool = False  # whether all stages have the same number of devices


def random_asked(rng: np.random.Generator) -> Asked:
    """Forward nodes on a path with some edges more or less, backward nodes that mirror them, or none."""
    n, trains = int(rng.integers(2, 6)), rng.random() < 0.85
    mirrored = rng.random() < 0.85
    path = rng.random() < 0.6
    pairs = {(i, i + 1) for i in range(n - 1) if path or rng.random() < 0.7}
    pairs |= {(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < (0.1 if path else 0.3)}
    edges = sorted(pairs)
    color: list[int | None] = list(range(n))
    count = n
    if trains:
        count = 2 * n
        edges += [(n + j, n + i) if mirrored else (n + i, n + j) for i, j in sorted(pairs)]
        edges += [(i, n + i) for i in range(n) if i == n - 1 or not mirrored or rng.random() < 0.5]
        color *= 2
    drop = rng.random(count) < 0.08  # a node without a backward one, or the reverse
    color = [None if drop[i] else c for i, c in enumerate(color)]
    edges = [(u, v) for u, v in edges if not mirrored or rng.random() < 0.97]
    shared = rng.choice(COSTS, count)
    kinds = [DeviceKind("gpu", int(rng.integers(1, 4)))]
    if rng.random() < 0.35:
        kinds.append(DeviceKind("cpu", 1, pays_communication=rng.random() < 0.5))
    parts: dict[str, Any] = {}
    if rng.random() < 0.4:
        parts = {name: rng.choice([0.0, 1.0, 2.0], count) for name in ("activations", "parameters")}
        most = float(sum(part.sum() for part in parts.values())) * rng.uniform(0.5, 2.5)
        kinds = [replace(kind, memory=most) for kind in kinds]
    replicas = 1
    if rng.random() < 0.2:
        replicas = 3
        parts["parameters"] = rng.choice([0.0, 1.0], count)
        kinds = [replace(kind, bandwidth=2.0) for kind in kinds]
    times = {kind.name: rng.choice(TIMES, count) for kind in kinds}
    graph = Graph.from_arrays(
        times,
        edges,
        [float(shared[u]) for u, _ in edges],
        backward=[i >= n for i in range(count)],
        color=color,
        **parts,
    )
    model = str(rng.choice(["sequential", "sequential", "overlapped", "duplex"]))
    schedule = str(rng.choice(TRAINING)) if trains else "inference"
    return Asked(graph, Devices(tuple(kinds), model), schedule, int(rng.integers(1, 12)), replicas)


def branching(rng: np.random.Generator) -> Asked:
    """Two branches between two nodes, each forward and backward, on devices of two kinds."""
    first, second = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    n = first + second + 2
    branches = [range(1, first + 1), range(first + 1, n - 1)]
    pairs = [pair for branch in branches for pair in pairwise([0, *branch, n - 1])]
    edges = pairs + [(n + j, n + i) for i, j in pairs] + [(i, n + i) for i in range(n)]
    shared = rng.choice(COSTS, 2 * n)
    time = rng.choice([0.25, 0.5, 1.0, 3.5], 2 * n)
    graph = Graph.from_arrays(
        {"gpu": time, "cpu": time * rng.choice([1.0, 1.5], 2 * n)},
        edges,
        [float(shared[u]) for u, _ in edges],
        backward=[i >= n for i in range(2 * n)],
        color=[*range(n), *range(n)],
    )
    kinds = (DeviceKind("gpu", int(rng.integers(1, 4))), DeviceKind("cpu", int(rng.integers(0, 2))))
    model = str(rng.choice(["sequential", "overlapped", "duplex"]))
    return Asked(graph, Devices(kinds, model), str(rng.choice(TRAINING)), int(rng.integers(1, 12)))


def crossing(rng: np.random.Generator) -> Asked:
    """A network of which backward nodes read tensors of forward nodes that others read forward."""
    n = int(rng.integers(3, 6))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < (0.8 if j == i + 1 else 0.3)]
    edges = pairs + [(n + j, n + i) for i, j in pairs] + [(i, n + i) for i in range(n)]
    edges += [(i, n + j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.3]
    shared = rng.choice([0.25, 0.5, 1.5], 2 * n)
    graph = Graph.from_arrays(
        {"gpu": rng.choice([0.5, 1.0, 3.5], 2 * n)},
        edges,
        [float(shared[u]) for u, _ in edges],
        backward=[i >= n for i in range(2 * n)],
        color=[*range(n), *range(n)],
    )
    devices = Devices((DeviceKind("gpu", int(rng.integers(1, 4))),))
    return Asked(graph, devices, str(rng.choice(TRAINING)), int(rng.integers(1, 9)))


def layouts(asked: Asked, most: int) -> list[list[list[str]]]:
    """Every list of at most `most` stages as lists of devices; of equal devices the first ones come first."""
    found: list[list[list[str]]] = []

    def grow(stages: list[list[str]], used: dict[str, int]) -> None:
        if stages:
            found.append(stages)
        if len(stages) == most:
            return
        for kind in asked.devices.kinds:
            first = used.get(kind.name, 0)
            for r in range(1, min(asked.replicas, kind.count - first) + 1):
                names = [kind.device(i) for i in range(first, first + r)]
                grow([*stages, names], used | {kind.name: first + r})

    grow([], {})
    return [stages for stages in found if not asked.equal or len({len(names) for names in stages}) == 1]


def best_makespan(asked: Asked) -> float:
    """The least simulated makespan over all chains on all layouts that obey the rules; infinity if none."""
    atom, best = atoms(asked.graph, NONE), math.inf
    splits = {}
    for stages in layouts(asked, int(atom.max()) + 1):
        count = len(stages)
        if count not in splits:
            splits[count] = chains(asked.graph, atom, count, NONE)
        lead = [names[0] for names in stages]
        replicas = {names[0]: tuple(names[1:]) for names in stages if len(names) > 1}
        for row in splits[count].tolist():
            placement = {node: lead[i] for node, i in zip(asked.graph.ids, row, strict=True)}
            given: dict[str, Any] = {"replicas": replicas or None, "order": lead}
            given |= {"microbatches": asked.microbatches, "schedule": asked.schedule}
            if evaluate(asked.graph, asked.devices, placement, split="chain", **given).feasible:
                best = min(best, simulate(asked.graph, asked.devices, placement, **given).makespan)
    return best


def searches(
    asked: Asked, value: float, settings: Settings, share: float = 0.0
) -> Iterator[tuple[PipelineProblem, FillDrain | None]]:
    """The search on the graph as it is, and on that in which nodes that cost nothing are merged.

    They leave out supernodes that take a share of the work.
    """
    terms = {"schedule": asked.schedule, "microbatches": asked.microbatches, "replicas": asked.replicas}
    options = read_options(SIMULATED, terms)
    workload = Workload(asked.graph, asked.devices)
    request = Request(workload, THROUGHPUT, "chain", METHODS["pipeline"], options)
    apart = request.problem(apart=True)
    for problem in (apart, request.problem()):
        assert isinstance(problem, PipelineProblem)
        assert isinstance(apart, PipelineProblem)
        model = FillDrainModel.of(asked.graph, problem, apart, spine_of(asked.graph, apart), settings)
        yield problem, None if model is None else model.search(value, share)


def bounds_of(asked: Asked, value: float, share: float = 0.0) -> list[float]:
    """The bounds of the graph as it is, and of the graph in which nodes that cost nothing are merged."""
    found: list[float] = []
    for problem, search in searches(asked, value, Settings(), share):
        spine = spine_of(asked.graph, problem)
        known = series_bound(problem, spine), busiest_bound(problem, spine, relax(problem).bound)
        found += [bound for bound in known if bound]
        if search is not None:
            for _ in search.narrow():
                pass
            found.append(search.bound)
    return found


def judged(seed: int, share: float = 0.0, draw: Draw = random_asked) -> tuple[float, list[float]]:
    """The best makespan of a random case, and its bounds."""
    asked = draw(np.random.default_rng(seed))
    try:
        best = best_makespan(asked)
    except PartitionerError:
        return math.inf, []
    return best, bounds_of(asked, ABOVE * best, share) if 0 < best < math.inf else []


@pytest.mark.parametrize(("first", "count"), [(0, 12), pytest.param(12, 80, marks=pytest.mark.slow)])
def test_no_bound_is_above_the_best_pipeline(first: int, count: int) -> None:
    """Against all chains on all lists of devices, each simulated."""
    known = 0
    for seed in range(first, first + count):
        best, bounds = judged(seed)
        for bound in bounds:
            assert bound <= best * (1 + 1e-9), f"seed {seed}: {bound} > {best}"
        known += len(bounds)
    assert known >= count


@pytest.mark.parametrize("draw", [random_asked, branching])
@pytest.mark.parametrize(("first", "count"), [(0, 12), pytest.param(12, 100, marks=pytest.mark.slow)])
def test_no_bound_without_light_supernodes_is_above_the_best_pipeline(
    first: int, count: int, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much of the work is left out; some of it lies between others, and some stages hold it alone."""
    known, lying = 0, list[int]()
    monkeypatch.setattr(module, "between_of", _counting(module.between_of, lying))
    for seed in range(first, first + count):
        for share in (0.1, 0.25, 0.6):
            best, bounds = judged(seed, share, draw)
            for bound in bounds:
                assert bound <= best * (1 + 1e-9), f"seed {seed}, share {share}: {bound} > {best}"
            known += len(bounds)
    assert known >= count and sum(lying) >= count / 4


@pytest.mark.parametrize(("first", "count"), [(0, 6), pytest.param(6, 60, marks=pytest.mark.slow)])
def test_pipelines_found_without_light_supernodes_are_plans(
    first: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was left out joins their stages; bound and value are on both sides of the best makespan."""
    monkeypatch.setattr(module, "EFFORT", replace(EFFORT, few=0, fewer=2.0, light=(0.2, 0.5)))
    stages_of, found, solved = Reduced.stages_of, list[Reduced](), 0

    def noted(fewer: Reduced, parts: Sequence[Part]) -> list[Part]:
        found.append(fewer)
        return stages_of(fewer, parts)

    monkeypatch.setattr(Reduced, "stages_of", noted)
    for seed, draw in product(range(first, first + count), (random_asked, branching)):
        asked = draw(np.random.default_rng([seed, 5]))
        given: dict[str, Any] = {"schedule": asked.schedule, "microbatches": asked.microbatches}
        try:
            best = best_makespan(asked)
            plan = solve(asked.graph, asked.devices, "makespan", replicas=asked.replicas, **given)
        except PartitionerError:
            continue
        assert plan.bound <= best * (1 + 1e-9) and plan.value >= best * (1 - 1e-9), seed
        solved += 1
    assert solved >= count and len(found) >= count


@pytest.mark.parametrize("draw", [random_asked, branching, crossing])
@pytest.mark.parametrize(("first", "count"), [(0, 60), pytest.param(60, 400, marks=pytest.mark.slow)])
def test_no_stage_takes_longer_in_a_pass_without_some_supernodes(
    first: int, count: int, draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Times and transfers of the stages between all ideals, where these take turns with processing."""
    compared = less = 0
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        monkeypatch.setattr(
            reduced, "all_but_lightest", lambda weight, _, rng=rng: rng.random(len(weight)) < 0.6
        )
        asked = replace(draw(rng), replicas=1)
        asked = replace(asked, devices=replace(asked.devices, communication="sequential"))
        try:
            found = searches(asked, math.inf, Settings())
            problem = next((search.problem for _, search in found if search), None)
        except PartitionerError:
            continue
        if problem is None:
            continue
        rest, fewer = reduced.left_out(problem, 0.0, np.zeros(problem.n, dtype=bool))
        cuts, others = (cuts_of(each, Settings(), 10_000) for each in (problem, rest))
        number = {row.tobytes(): cut for cut, row in enumerate(others.member)}
        of = np.array([number[row[fewer.kept].tobytes()] for row in cuts.member])
        a, c = np.nonzero(cuts.nested)
        whole = CutCosts(problem, 0, cuts)
        part = CutCosts(rest, 0, replace(others, loose=True), fewer=fewer)
        shorter = passes_of(whole)[:, :, a, c] - passes_of(part)[:, :, of[a], of[c]]
        assert (shorter >= -1e-9).all(), seed
        compared, less = compared + len(a), less + int((shorter > 1e-9).any())
    assert compared > count and less > count / 2


def passes_of(costs: CutCosts) -> Any:
    """The processing and the transfers of stages in both passes, shape (2, 2, m, m)."""
    moved = transfers_between(costs, np.ones(len(costs.problem.nets.cost), dtype=bool))
    return np.stack((costs.passes(), moved))


def _counting(of: Callable[..., Any], counts: list[int]) -> Callable[..., Any]:
    """The function that notes how many supernodes that are left out lie between others."""

    def counted(whole: Any, triples: Any, rest: Any) -> Any:
        counts.append(len(triples))
        return of(whole, triples, rest)

    return counted


@pytest.mark.parametrize(("first", "count"), [(0, 15), pytest.param(15, 300, marks=pytest.mark.slow)])
def test_bounds_hold_for_pipelines_of_equal_numbers(first: int, count: int) -> None:
    """Plans whose stages must have equal numbers of devices are no better than the best of all of these."""
    found = proven = 0
    for seed in range(first, first + count):
        asked = replace(random_asked(np.random.default_rng([seed, 28])), replicas=3, equal=True)
        given: dict[str, Any] = {"schedule": asked.schedule, "microbatches": asked.microbatches}
        try:
            best = best_makespan(asked)
            plan = solve(
                asked.graph,
                asked.devices,
                "makespan",
                replicas=3,
                constraints=Constraints(equal_replicas=True),
                **given,
            )
        except PartitionerError:
            continue
        assert plan.bound <= best * (1 + 1e-9) and plan.value >= best * (1 - 1e-9), seed
        found, proven = found + 1, proven + (plan.status == "optimal")
    assert found > count / 2 and proven > found / 3


def test_a_makespan_of_zero_has_a_bound_of_zero() -> None:
    graph = Graph.from_arrays({"accelerator": [0.0, 0.0, 0.0]}, [(0, 1), (1, 2)])
    plan = solve(graph, Devices.accelerated(2, cpus=0), "makespan", schedule="inference", microbatches=4)
    assert (plan.value, plan.bound, plan.status) == (0.0, 0.0, "optimal")


@cache
def best_of(seed: int) -> float:
    """The best makespan of a random case that several tests look at."""
    return best_makespan(random_asked(np.random.default_rng([seed, 31])))


def random_searches(
    count: int, settings: Settings, way: int | None = None
) -> Iterator[tuple[int, float, FillDrain]]:
    """The seeds of random cases, their best makespans, and the searches for their bounds that go a way."""
    for seed in range(count):
        try:
            asked = random_asked(np.random.default_rng([seed, 31]))
            found = [each for _, each in searches(asked, math.inf, settings) if each is not None]
            found = [each for each in found if way in (None, each.way)]
            best = best_of(seed) if found else math.inf
        except PartitionerError:
            continue
        for search in found if 0 < best < math.inf else ():
            search.value = ABOVE * best
            yield seed, best, search


@pytest.mark.parametrize("count", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_times_outside_ideals_without_a_search_are_no_longer_than_the_least(count: int) -> None:
    positive = compared = 0
    for seed, best, search in random_searches(count, Settings()):
        least = search._outside(ABOVE * best)
        assert least is not None
        most, held = ABOVE * best / search.samples, held_of(search.lattice, search.spine.on[::-1])
        unused = search.tables.space.free.sum(axis=1)
        found = least_outside(search.problem, search.spine, search.lattice, held, most)[unused]
        assert (found <= least * (1 + 1e-9) + 1e-9).all(), seed
        compared, positive = compared + found.size, positive + int((found > 0).sum())
    assert positive > compared / 10


@pytest.mark.parametrize("count", [12, pytest.param(300, marks=pytest.mark.slow)])
def test_the_longest_path_outside_the_empty_ideal_is_a_bound(count: int) -> None:
    """Where paths leave nothing out; it is often better than the samples times the largest load."""
    better = compared = 0
    for seed, best, search in random_searches(4 * count, Settings(), STREAM):
        outside = search._outside(ABOVE * best)
        if outside is not None:
            assert outside[0, 0, LONGEST] <= best * (1 + 1e-9), seed
            compared, better = compared + 1, better + int(outside[0, 0, LONGEST] > search.bound * (1 + 1e-9))
    assert compared > count / 2
    assert better > compared / 4


def next_limits(limits: LimitBracket) -> ThresholdRule:
    """The rule by which the search asks."""
    return lambda _: limits.next_limit()


@pytest.mark.parametrize("count", [12, pytest.param(150, marks=pytest.mark.slow)])
def test_limits_lie_between_bound_and_value_and_few_are_spread(count: int) -> None:
    """However few steps a table takes; the limits that are spread come before steps up from the bound."""
    spread = 0
    for seed, best, search in random_searches(count, Settings()):
        states = search.lattice.size * search.tables.space.count
        levels = levels_of(search.problem, search.spine, states, search.idle)
        level = next((each for each in levels if each.slots == EFFORT.slots[0]), None)
        outside = search._outside(ABOVE * best)
        if level is None or outside is None:
            continue
        limits = LimitBracket(search, outside, 0.0, EFFORT.spread)
        low = limits.bound
        for question in limits.questions(next_limits(limits), level):
            assert low < question.threshold < search.value, seed
            low = limits.bound
        assert limits.asked <= EFFORT.limits, seed
        assert limits.bound <= best * (1 + 1e-9), seed
        spread += limits.asked
    assert spread > count


@pytest.mark.parametrize("count", [8, pytest.param(150, marks=pytest.mark.slow)])
def test_bounds_hold_where_the_times_outside_ideals_take_too_many_steps(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "EFFORT", replace(EFFORT, most_steps=0, slice=0))
    raised = found = 0
    for seed, best, search in random_searches(count, Settings().within(60.0)):
        known = search.bound
        for _ in search.narrow():
            pass
        assert search.bound <= best * (1 + 1e-9), f"seed {seed}: {search.bound} > {best}"
        raised, found = raised + (search.bound > known), found + (search.most_steps == math.inf)
    assert found > count / 2
    assert raised > count / 2


def test_an_exchange_once_a_batch_takes_place_while_stages_before_still_work() -> None:
    """The last backward passes of the first stage hide the exchange; it was counted beside them."""
    asked = random_asked(np.random.default_rng([57, 31]))
    best = best_makespan(asked)
    assert asked.replicas == 3 and asked.devices.exchange == "ring" and best == 30.5
    bounds = bounds_of(asked, ABOVE * best)
    assert max(bounds) <= best and max(bounds) > 0.99 * best
