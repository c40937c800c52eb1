"""Plans with copies of operators that depend on inputs alone, against all plans of small graphs."""

from __future__ import annotations

import json
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partitioner as pt
from partitioner.cli.command_line import main

DEVICES = pt.Devices.accelerated(3)


def masked(times: list[float], mask: float = 0.2, sent: float = 4.0, training: bool = False) -> pt.Graph:
    """Return layers one after the other that all read a mask, which one operator makes of another's."""
    n = len(times)
    layers = [f"l{i}" for i in range(n)]
    edges = [*pairwise(layers), ("ids", "mask"), *(("mask", one) for one in layers)]
    cost = [1.0] * (n - 1) + [sent] * (n + 1)
    time = [mask / 2, mask / 2, *times]
    ids = ["ids", "mask", *layers]
    color: list[Any] = [None, None, *layers]
    if training:
        back = [f"{one}/backward" for one in layers]
        edges += [*zip(back[1:], back, strict=False), *((a, b) for a, b in zip(layers, back, strict=True))]
        edges += [("mask", one) for one in back]
        cost += [1.0] * (n - 1) + [0.5] * n + [sent] * n
        time, ids, color = [*time, *(2 * one for one in times)], [*ids, *back], [*color, *layers]
    return pt.Graph.from_arrays(
        {"accelerator": time},
        edges,
        cost,
        ids=ids,
        color=color,
        backward=["backward" in one for one in ids],
        parameters=[float(one not in ("ids", "mask")) for one in ids],
    )


def loads_by_hand(graph: pt.Graph, stage: dict[str, int], count: int) -> list[float]:
    """Return the load of each stage by the formula: own nodes, the mask where it is read, transfers."""
    time = dict(zip(graph.ids, graph.time[0].tolist(), strict=True))
    copies = ("ids", "mask")
    loads = [0.0] * count
    for d in range(count):
        own = [node for node in graph.ids if node not in copies and stage[str(node)] == d]
        loads[d] += sum(time[node] for node in own) + (time["ids"] + time["mask"] if own else 0.0)
    sent: dict[Any, tuple[float, set[int]]] = {}
    for (a, b), cost in zip(graph.edges.tolist(), graph.cost.tolist(), strict=True):
        source, target = str(graph.ids[a]), str(graph.ids[b])
        if source not in copies and stage[source] != stage[target]:
            same = len({c for e, c in zip(graph.edges[:, 0], graph.cost, strict=True) if e == a}) == 1
            sent.setdefault(a if same else (a, b), (cost, set()))[1].add(stage[target])
    for key, (cost, readers) in sent.items():
        source = str(graph.ids[key[0] if isinstance(key, tuple) else key])
        loads[stage[source]] += cost
        for reader in readers:
            loads[reader] += cost
    return loads


CASES = given(
    st.lists(st.integers(1, 6), min_size=2, max_size=5),
    st.sampled_from([0.0, 0.2, 3.0]),
    st.sampled_from([0.0, 0.5, 6.0]),
    st.booleans(),
    st.sampled_from(["chain", "free"]),
)


@settings(max_examples=8, deadline=None)
@CASES
def test_against_all_plans(times: list[int], mask: float, sent: float, training: bool, split: str) -> None:
    """The value is that of the formula, the bound holds for all plans, and the plan is within the copies."""
    check_against_all_plans(times, mask, sent, training, split)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@CASES
def test_against_all_plans_of_many(
    times: list[int], mask: float, sent: float, training: bool, split: str
) -> None:
    check_against_all_plans(times, mask, sent, training, split)


def check_against_all_plans(times: list[int], mask: float, sent: float, training: bool, split: str) -> None:
    graph = masked([float(one) for one in times], mask, sent, training)
    best, layers = float("inf"), [f"l{i}" for i in range(len(times))]
    for homes in product(range(3), repeat=len(layers)):
        if split == "chain" and list(homes) != sorted(homes):
            continue
        stage = {one: home for layer, home in zip(layers, homes, strict=True)
                 for one in (layer, f"{layer}/backward")}  # fmt: skip
        best = min(best, max(loads_by_hand(graph, stage, 3)))
    plan = pt.solve(graph, DEVICES, split=split, input_operators="copied", workers=1)
    number = {device: i for i, device in enumerate(DEVICES.names)}
    found = {str(node): number[device] for node, device in plan.placement.items()}
    assert plan.value == pytest.approx(max(loads_by_hand(graph, found, 3)))
    assert plan.bound <= best * (1 + 1e-9) and best <= plan.value * (1 + 1e-9)
    assert plan.value <= best + mask * (1 + 1e-9)
    assert pt.evaluate(graph, DEVICES, plan).value == plan.value
    sent_plan = pt.solve(graph, DEVICES, split=split, input_operators="sent", workers=1)
    assert sent_plan.value == pt.solve(graph, DEVICES, split=split, workers=1).value
    chosen = pt.solve(graph, DEVICES, split=split, input_operators="auto", workers=1)
    assert chosen.value == min(plan.value, sent_plan.value)
    assert chosen.bound <= min(best, sent_plan.value) * (1 + 1e-9)
    assert chosen.options["input_operators"] == ("copied" if plan.value < sent_plan.value else "sent")


def test_the_choice_follows_what_is_cheaper() -> None:
    cheap, dear = masked([1.0] * 6, 0.1, 4.0), masked([1.0] * 6, 9.0, 0.01)
    copied, sent = (pt.solve(each, DEVICES, input_operators="auto") for each in (cheap, dear))
    assert copied.options["input_operators"] == "copied" and sent.options["input_operators"] == "sent"
    words = "are computed on every device that reads them: sent from one device the best plan found has"
    assert any(words in note for note in copied.notes)
    assert copied.value == pytest.approx(4.1) and pt.solve(cheap, DEVICES).value == pytest.approx(6.1)


@pytest.mark.parametrize(
    "options",
    [
        {"objective": "gpipe"},
        {"objective": "batch", "microbatches": 4},
        {"schedule": "1f1b", "microbatches": 4},
        {"objective": "throughput", "replicas": 2},
        {"objective": "throughput", "split": "convex"},
    ],
)
def test_every_verb_takes_the_plan(options: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    """Evaluation, certificate, simulation and explanation have the copies, from Python and from files."""
    graph = masked([1.0, 2.0, 1.0, 3.0], 0.2, 5.0, training=True)
    plan = pt.solve(graph, DEVICES, input_operators="copied", workers=1, **options)
    sent = pt.solve(graph, DEVICES, workers=1, **options)
    assert plan.value < sent.value and plan.bound <= plan.value
    simulated = "schedule" in options
    value = pt.evaluate(graph, DEVICES, plan).value
    assert (pt.schedule.simulate(graph, DEVICES, plan).makespan if simulated else value) == plan.value
    assert pt.explain(graph, DEVICES, plan).value == plan.value
    if plan.objective == "throughput":
        certificate = pt.certify(graph, DEVICES, plan)
        assert certificate.value == plan.value and certificate.bound <= plan.bound * (1 + 1e-9)
    workload, file = tmp_path / "workload.json", tmp_path / "plan.json"
    pt.Workload(graph, DEVICES).save(workload)
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    command = ["solve", str(workload), "--input-operators", "copied", "--output", str(file), *words]
    assert main([*command, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == plan.value
    assert main(["evaluate", str(workload), str(file), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["value"]
    assert simulated or found == plan.value


def test_memory_of_copies_is_counted() -> None:
    graph = masked([1.0] * 3)
    size = np.array([0.0, 2.0, 1.0, 1.0, 1.0])
    heavy = pt.Graph(**{**vars(graph), "size": size})
    plan = pt.solve(heavy, DEVICES, input_operators="copied")
    assert [load.memory for load in plan.devices] == [4.0, 4.0, 4.0]  # a parameter, the layer, the mask
    with pytest.raises(pt.NoPlanFound, match=r"has room for copies .*, and none sends them"):
        pt.solve(heavy, pt.Devices.accelerated(3, memory=3.2), input_operators="copied")


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_a_plan_is_found_wherever_copies_or_one_have_room(data: st.DataObject) -> None:
    """Against all plans of both kinds: readers share copies in the search, stages hold whole ones."""
    n = data.draw(st.integers(2, 4))
    graph = masked(
        [float(data.draw(st.integers(1, 3))) for _ in range(n)], sent=data.draw(st.sampled_from([0.1, 4.0]))
    )
    size = np.array(
        [0.0, float(data.draw(st.integers(0, 4))), *(float(data.draw(st.integers(0, 3))) for _ in range(n))]
    )
    heavy = pt.Graph(**{**vars(graph), "size": size})
    tight = pt.Devices.accelerated(3, memory=data.draw(st.integers(3, 9)) + 0.5)
    best = {"sent": np.inf, "copied": np.inf}
    for homes in product(tight.names, repeat=n + 1):
        placement = dict(zip(heavy.ids, (homes[0], *homes), strict=True))
        found = pt.evaluate(heavy, tight, placement)
        if found.feasible and found.shape.is_chain:
            best["sent"] = min(best["sent"], found.value)
        stage = {str(node): tight.names.index(home) for node, home in placement.items()}
        held = [sum(size[2 + i] + 1.0 for i in range(n) if stage[f"l{i}"] == d) for d in range(3)]
        used = {stage[f"l{i}"] for i in range(n)}
        ascending = [stage[f"l{i}"] for i in range(n)]
        chain = len(used) == sum(a != b for a, b in pairwise(ascending)) + 1
        if chain and all(held[d] + size[1] <= tight.kinds[0].memory for d in used):
            best["copied"] = min(best["copied"], max(loads_by_hand(heavy, stage, 3)))
    for how in ("copied", "auto"):
        try:
            plan = pt.solve(heavy, tight, input_operators=how)
        except pt.InfeasibleError:
            assert min(best.values()) == np.inf or (how == "copied" and best["copied"] == np.inf)
            continue
        except pt.NoPlanFound:  # copies may have room in a plan that is not among the best of the search
            assert best["sent"] == np.inf
            continue
        assert plan.value >= min(best.values()) - 1e-9 and plan.bound <= min(best.values()) + 1e-9
        assert not pt.evaluate(heavy, tight, plan).violations
        sent = any("they are sent" in note for note in plan.notes)
        assert plan.value >= best["sent" if sent else "copied"] - 1e-9 or how == "auto"


def test_objectives_that_are_not_made_of_loads_are_refused() -> None:
    graph = masked([1.0] * 3)
    for objective in ("latency", "makespan"):
        with pytest.raises(pt.OptionError, match=rf"'copied': .* '{objective}' is not made of loads"):
            pt.solve(graph, DEVICES, objective, input_operators="copied")
    with pytest.raises(pt.OptionError, match="input_operators = 'no': must be one of"):
        pt.solve(graph, DEVICES, input_operators="no")
    plain = pt.Graph.from_arrays({"accelerator": [1.0, 1.0]}, [(0, 1)], parameters=1.0)
    found = pt.solve(plain, DEVICES, input_operators="auto")
    assert found.value == pt.solve(plain, DEVICES).value
    assert "has no effect: no node depends on inputs alone" in found.notes[0]
