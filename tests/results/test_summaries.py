"""Tables fit their width without cutting a cell, whatever the numbers, and say what they must."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from partitioner import DeviceKind, Devices, Graph, Plan, evaluate, explain, solve
from partitioner.base.errors import SHOWN_FLAWS
from partitioner.cli.methods import backends_table, methods_table
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.text.tables import MOST_LINES
from partitioner.methods.registry import METHODS
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from tests.instances import chain, training, zero

EXTREMES = (0.0, 1e-9, 0.003906, 0.0125, 0.9999, 1.0, 41.7458, 999.96, 123456.789, 9.9999995e6, 1.23e7, 1e12)


def long_plan(communication: str = "sequential") -> Plan:
    """A training plan on twelve devices whose numbers are large, tiny and zero."""
    n = len(EXTREMES)
    time = [*EXTREMES, *reversed(EXTREMES)]
    edges = [(i, i + 1) for i in range(2 * n - 1)]
    graph = Graph.from_arrays(
        {"accelerator": time},
        edges,
        [EXTREMES[i % n] for i in range(2 * n - 1)],
        size=[size * 1e9 for size in time],
        backward=[False] * n + [True] * n,
        color=[*range(n), *reversed(range(n))],
    )
    devices = Devices.accelerated(12, memory=1.7185374208e10, cpus=1, communication=communication)
    placement = {i: f"accelerator{min(i, 2 * n - 1 - i)}" for i in range(2 * n)}
    loads = evaluate(graph, devices, placement).loads
    plan = solve(training().graph, training().devices)
    return replace(
        plan, runtime_seconds=1.0, devices=loads, stages=tuple(f"accelerator{i}" for i in range(n))
    )


def device_lines(table: str) -> list[str]:
    """The lines that speak of a device."""
    return [line for line in table.splitlines() if "accelerator" in line]


@pytest.mark.parametrize("width", [80, 100, 127, 128, 160])
def test_no_line_is_longer_than_the_width_and_no_cell_is_cut(width: int) -> None:
    table = long_plan().summary(width)
    assert max(map(len, table.splitlines())) <= width
    assert "…" not in table
    assert len(device_lines(table)) == 12


def test_a_narrow_terminal_gets_the_table_of_80_columns() -> None:
    assert long_plan().summary(20) == long_plan().summary(80)


def test_only_a_wide_table_has_bars() -> None:
    """The bar of the largest load is the longest."""
    plan = long_plan()
    assert "█" not in plan.summary(80)
    bars = [line.count("█") for line in device_lines(plan.summary(160))]
    loads = [device.load for device in sorted(plan.devices, key=lambda device: device.load)][-1]
    largest = [place for place, line in enumerate(bars) if line == max(bars)]
    assert max(bars) == 24 and [plan.devices[i].load for i in largest] == [loads]


def test_devices_stand_in_the_order_of_the_pipeline() -> None:
    """Devices out of use come last, without a stage."""
    plan = solve(chain().graph, Devices.accelerated(3))
    rows = [line.split()[:2] for line in device_lines(plan.summary(80))]
    assert rows[: len(plan.stages)] == [[str(i), name] for i, name in enumerate(plan.stages, 1)]
    idle = replace(plan, stages=("accelerator2", "accelerator0"))
    assert [line.split()[0] for line in device_lines(idle.summary(80))] == ["1", "2", "-"]
    assert device_lines(idle.summary(80))[0].split()[1] == "accelerator2"


def test_the_head_says_value_proof_and_method() -> None:
    head = solve(training().graph, training().devices).summary(80).splitlines()[:2]
    assert head[0] == "throughput, chain split: 7.5 per sample, optimal"
    assert head[1].startswith("lower bound 7.5; method dp (numba), stopped: optimal, ")


def test_a_plan_that_is_not_proven_says_how_far_it_may_be() -> None:
    plan = replace(long_plan(), status="feasible", value=10.0, bound=9.0, notes=("a long word " * 12,))
    table = plan.summary(80)
    assert "10 per sample, within 10.00% of the optimum" in table
    assert "\nnote: a long word" in table and max(map(len, table.splitlines())) <= 80


def test_loads_of_zero_are_no_division_by_zero() -> None:
    plan = solve(zero().graph, zero().devices)
    assert "0%" in plan.summary(80) and "█" not in plan.summary(160)


def test_memory_is_shown_with_its_share() -> None:
    """16 of 20 GB; no share without a limit; far too much is no endless number."""
    graph = Graph.from_arrays({"gpu": [1.0] * 3, "cpu": [1.0] * 3}, size=[16e9, 999.6e6, 1e60])
    devices = Devices((DeviceKind("gpu", 2, 20e9), DeviceKind("cpu", 1)))
    table = evaluate(graph, devices, {0: "gpu0", 1: "cpu0", 2: "gpu1"}).summary(80)
    rows = {line.split()[1]: line.split() for line in table.splitlines() if line[0] in "123"}
    assert rows["gpu0"][6:8] == ["16G", "80%"]
    assert rows["cpu0"][6:8] == ["1G", "1"]
    assert rows["gpu1"][6:8] == ["1e+48T", ">999%"]


def test_long_device_names_are_folded_not_cut() -> None:
    name = "a-very-long-name-of-a-kind-of-device-"
    graph = Graph.from_arrays({name: [123456.7, 0.001234]}, [(0, 1)], 1e-5)
    found = evaluate(graph, Devices((DeviceKind(name, 2),)), {0: f"{name}0", 1: f"{name}1"})
    table = found.summary(80)
    assert "…" not in table and max(map(len, table.splitlines())) <= 80


def test_an_evaluation_says_what_is_broken() -> None:
    graph, devices = training().graph, training().devices
    placement = {"f1": "accelerator0", "f2": "accelerator1", "b2": "accelerator0", "g": "cpu5", "b1": "cpu5"}
    table = evaluate(graph, devices, placement).summary(80)
    assert "the placement breaks the rules" in table.splitlines()[0]
    assert table.splitlines()[1].startswith("shape: ")
    assert "broken: cpu5 does not exist: there are 2 of kind accelerator, 0 of kind cpu" in table
    assert "broken: colour class 1 is on two devices" in table


def test_only_so_many_broken_rules_are_shown() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 50, "cpu": [1.0] * 50}, allowed={"accelerator": False})
    placement = dict.fromkeys(graph.ids, "accelerator0")
    table = evaluate(graph, Devices.accelerated(1, cpus=1), placement).summary(80)
    assert table.count("broken: node") == SHOWN_FLAWS
    assert table.endswith(f"broken: ... and {50 - SHOWN_FLAWS} more")


def test_every_method_is_in_its_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    table = methods_table(list(METHODS.values()))
    assert all(f"\n {name} " in table for name in METHODS)
    assert "…" not in table and max(map(len, table.splitlines())) <= 80


def test_every_backend_is_in_its_table_with_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = backends_table(list(BACKENDS.values()), ["gurobi"]).splitlines()
    rows = {line.split()[0]: line for line in lines if line.split()}
    assert set(BACKENDS) <= set(rows)
    assert 'no: pip install "dnn-partitioner[gurobi]"' in rows["gurobi"]
    assert " yes " in rows["cbc"]


def latency_table(width: int, nodes: int = 30, every: int = 2, **options: Any) -> str:
    """The timetable of a chain in which every so many nodes one is on an accelerator, the rest on CPUs."""
    times = [1.0 + i for i in range(nodes)]
    edges = [(f"node-{i}", f"node-{i + 1}") for i in range(nodes - 1)]
    ids = [f"node-{i}" for i in range(nodes)]
    graph = Graph.from_arrays({"accelerator": times, "cpu": times}, edges, 0.5, ids=ids)
    placement = {node: f"cpu{i % 2}" if i % every else "accelerator0" for i, node in enumerate(ids)}
    evaluation = evaluate(graph, Devices.accelerated(1, cpus=2), placement, "latency", **options)
    return evaluation.summary(width)


@pytest.mark.parametrize("width", [80, 127, 128, 160])
def test_the_timetable_fits_its_width(width: int) -> None:
    table = latency_table(width)
    assert max(map(len, table.splitlines())) <= width and "…" not in table
    assert len([line for line in table.splitlines() if line.startswith("* ") and "node-" in line]) == 30


def test_the_timetable_says_who_waits_for_whom() -> None:
    """Nodes 0, 3 on the accelerator, 1 and 2 on the CPUs: these stand in one line."""
    lines = latency_table(80, 4, 3, subgraphs_per_accelerator=2).splitlines()
    assert lines[0] == "latency: 11 per sample; the placement is feasible"
    assert [line.split() for line in lines if "node-" in line] == [
        ["*", "1", "0", "1.5", "accelerator0", "-", "1:", "'node-0'"],
        ["*", "2", "1.5", "6.5", "cpu1", "and", "1", "more", "1", "2:", "'node-1',", "'node-2'"],
        ["*", "3", "6.5", "11", "accelerator0", "2", "1:", "'node-3'"],
    ]


def test_only_a_wide_timetable_has_the_parts_of_an_entry() -> None:
    wide = next(line for line in latency_table(160, 2).splitlines() if "'node-0'" in line)
    assert wide.split() == ["*", "1", "0", "1.5", "accelerator0", "0", "1", "0.5", "-", "1:", "'node-0'"]


def test_what_is_not_on_the_critical_path_is_not_marked() -> None:
    graph = Graph.from_arrays({"accelerator": [5.0, 1.0]}, ids=["a", "b"])
    placement = {"a": "accelerator0", "b": "accelerator1"}
    lines = evaluate(graph, Devices.accelerated(2), placement, "latency").summary(80).splitlines()
    assert [line[0] for line in lines if "1: '" in line] == ["*", " "]


def test_the_middle_of_a_long_timetable_is_left_out() -> None:
    """120 lines: the first 20, the last 20, and how many there are between."""
    table = latency_table(80, 120, subgraphs_per_accelerator=60)
    lines = [line for line in table.splitlines() if "node-" in line or "more lines" in line]
    assert len(lines) == MOST_LINES + 1
    assert lines[20].strip() == "... 80 more lines"
    assert "'node-19'" in lines[19] and "'node-100'" in lines[21]


def test_many_nodes_of_a_line_are_counted() -> None:
    table = latency_table(80, 40, 40)
    line = next(line for line in table.splitlines() if "39: " in line)
    assert line.endswith("39: 'node-1', 'node-2', ...")


def test_without_a_schedule_there_is_no_timetable() -> None:
    graph = Graph.from_arrays({"accelerator": [1.0] * 4}, [(0, 1), (2, 3)])
    placement = {i: f"accelerator{int(i in (1, 2))}" for i in range(4)}
    table = evaluate(graph, Devices.accelerated(2), placement, "latency").summary(80)
    assert table.startswith("latency: inf per sample; the placement breaks the rules")
    assert "broken: subgraphs wait for one another: " in table and "after" not in table


def replicated(bandwidth: float | None = 1.0) -> Evaluation:
    """Stages of 12 and 2 units: the first on three devices, one device idle."""
    graph = Graph.from_arrays({"gpu": [12.0, 2.0]}, [(0, 1)], size=[6.0, 1.0])
    devices = Devices((DeviceKind("gpu", 5, 16.0, bandwidth=bandwidth),))
    return evaluate(graph, devices, {0: "gpu0", 1: "gpu1"}, replicas={"gpu0": ["gpu2", "gpu4"]})


@pytest.mark.parametrize("width", [80, 160])
def test_a_stage_on_several_devices_is_one_line(width: int) -> None:
    """12 / 3 + 2 * 6 / 3 a sample; the copies stand on no line of their own."""
    lines = [line for line in replicated().summary(width).splitlines() if "gpu" in line]
    assert lines[0].split()[:8] == ["1", "gpu0", "x3", "8", "4", "0", "0", "4"]
    assert [line.split()[1] for line in lines] == ["gpu0", "gpu1", "gpu3"]
    assert max(map(len, lines)) <= width


def test_there_is_a_column_for_exchanged_weights_only_where_there_are_any() -> None:
    """It takes the place of the shares."""
    for width in (80, 160):
        table = replicated().summary(width)
        assert "sync" in table and "load %" not in table
        for plain in (replicated(None).summary(width), long_plan().summary(width)):
            assert "sync" not in plain and "load %" in plain


@pytest.mark.parametrize("width", [80, 128])
def test_replicas_with_extreme_numbers_fit_too(width: int) -> None:
    plan = long_plan()
    loads = [replace(load, sync=load.load) for load in plan.devices]
    copies = [replace(loads[0], name=f"copy{i}", replica_of=loads[0].name) for i in range(300)]
    table = replace(plan, devices=(*loads, *copies)).summary(width)
    assert max(map(len, table.splitlines())) <= width
    assert table.count("x301") == 1 and "…" not in table and "copy" not in table


def test_a_batch_is_not_a_sample() -> None:
    graph, devices = chain().graph, Devices.accelerated(1)
    placement = dict.fromkeys(graph.ids, "accelerator0")
    found = evaluate(graph, devices, placement, "batch", microbatches=3)
    assert found.summary().startswith(f"batch: {3 * found.loads[0].load:.6g} per batch")


def test_names_of_others_do_nothing_to_the_terminal() -> None:
    """Escape sequences are written out, and what looks like markup stays as it is."""
    graph = Graph.from_arrays({"[/x]\x1b[2J": [1.0, 2.0]}, [(0, 1)], 0.5, names=["[red]a", "b\r"])
    plan = solve(graph, Devices((DeviceKind("[/x]\x1b[2J", 2),)))
    text = plan.summary()
    assert "\x1b" not in text and r"[/x]\x1b[2J0" in text
    assert "\x1b" not in str(explain(graph, plan.hardware, plan).summary())
