"""Whatever is asked for and has no effect is refused or noted; what has one, and each default, is neither."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from partitioner import (
    DeviceKind,
    Devices,
    Graph,
    Level,
    OptionError,
    Placer,
    Transfers,
    Workload,
    WorkloadError,
    compare_methods,
    evaluate,
    from_networkx,
    solve,
)
from partitioner.cli.command_line import main
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import OPERATORS
from partitioner.planning.option_effects import has_effect
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.options import default_options
from partitioner.planning.request import Request
from partitioner.schedule import simulate

GRAPH = Graph.from_arrays({"gpu": [1.0, 2.0, 1.0], "cpu": [3.0, 3.0, 3.0]}, [(0, 1), (1, 2)], 0.5)
DEVICES = Devices((DeviceKind("gpu", 2), DeviceKind("cpu", 1, pays_communication=False)))
OTHERS: dict[str, Any] = {
    "memory_budget": 2**20,
    "step_limit": 1000,
    "orders": 3,
    "contiguous_cpus": False,
    "contiguous_backward": True,
    "microbatches": 4,
    "subgraphs_per_accelerator": 2,
    "transfers": Transfers(contention=True),
    "refine": True,
    "reserve_memory": False,
    "grouper": "coplace",
    "fuse": True,
    "uniform": False,
    "sct_threshold": 0.5,
    "fusion_range": 3,
    "fusion_memory": 0.5,
    "imbalance": 0.1,
    "max_time_per_sample": 5.0,
    "max_slowdown": 1.5,
    "placer": Placer(priority="bottom_level", insertion=False),
}


def ask(objective: str = "throughput", **given: Any) -> tuple[str, ...]:
    return solve(GRAPH, DEVICES, objective, time_limit=5.0, **given).notes


def test_every_option_has_an_effect_somewhere_only() -> None:
    """But those that another rule refuses, or that always mean something."""
    everywhere = {"granularity", "schedule", "virtual_stages", "constraints", "deterministic"}
    everywhere |= {"recompute", "zero", "data_parallel", "optimizer"}  # refused but in training
    of_training: dict[str, Any] = {"recompute": "full", "zero": 1, "data_parallel": 2, "optimizer": "sgd"}
    for name, value in of_training.items():
        with pytest.raises(OptionError, match=f"^{name} = .*: is for training"):
            ask(**{name: value})
    everywhere |= {"tied", "input_operators"}  # which do nothing where a graph has none
    assert {name for name in default_options() if OPTIONS[name].effect is None} == everywhere
    assert set(OTHERS) | {"replicas"} == default_options().keys() - everywhere


@pytest.mark.parametrize(
    "method",
    ["dp", "single_device", *(pytest.param(name, marks=pytest.mark.slow) for name in ("heft", "metis"))],
)
def test_defaults_are_never_refused_or_noted(method: str) -> None:
    if method == "metis":
        pytest.importorskip("pymetis")
    given = default_options() | {"method": method}
    assert not [note for note in ask(**given) if "no effect" in note]


@pytest.mark.parametrize("name", OTHERS)
def test_options_of_other_methods_are_refused_or_noted(name: str) -> None:
    """On the plainest method none of them but `microbatches` has an effect."""
    given = {"method": "single_device", name: OTHERS[name]}
    effect = OPTIONS[name].effect
    if effect is not None and effect.refused and name != "microbatches":
        with pytest.raises(OptionError, match=f"{name} = .* has no effect with method single_device"):
            ask(**given)
    else:
        assert [note for note in ask(**given) if note.startswith(f"{name} = ") and "no effect" in note]


@pytest.mark.parametrize(
    ("name", "objective", "method"),
    [
        *(
            pytest.param(name, "makespan", method, marks=pytest.mark.slow)
            for name, method in (
                ("refine", "heft"),
                ("grouper", "m-etf"),
                ("fuse", "m-topo"),
                ("placer", "list"),
                ("fusion_range", "celeritas"),
                ("sct_threshold", "m-sct"),
                ("transfers", "etf"),
            )
        ),
        ("orders", "throughput", "dpl"),
        ("memory_budget", "throughput", "dp"),
    ],
)
def test_options_of_a_method_stand_without_a_word(name: str, objective: str, method: str) -> None:
    value = Placer() if name == "placer" else OTHERS[name]
    assert not [note for note in ask(objective, method=method, **{name: value}) if "no effect" in note]


@pytest.mark.parametrize("method", METHODS)
def test_each_method_of_the_table_is_there(method: str) -> None:
    """`refine` means something to list schedulers alone."""
    asked = Request(Workload(GRAPH, DEVICES), OPERATORS, "free", METHODS[method])
    listed = METHODS[method].places_operators and method not in ("scotch", "metis")
    assert has_effect("refine", True, asked) == listed


def test_microbatches() -> None:
    """They count for batches and makespans, and for schedules that hold no more than a batch has."""
    unread = "microbatches = 4 has no effect on loads and memory"
    assert f"{unread} without a schedule" in ask(microbatches=4)
    assert f"{unread} under schedule inference" in ask(microbatches=4, schedule="inference")
    assert not [note for note in ask(microbatches=4, schedule="1f1b") if "no effect" in note]
    assert not [note for note in ask("batch", microbatches=4) if "no effect" in note]
    placement = dict.fromkeys(range(3), "gpu0")
    assert evaluate(GRAPH, DEVICES, placement, microbatches=4).notes == (f"{unread} without a schedule",)
    for objective, split in (("gpipe", "free"), ("latency", None)):
        with pytest.raises(OptionError, match="microbatches = 4 has no effect with method"):
            ask(objective, split=split, microbatches=4)


def test_subgraphs_are_for_latency() -> None:
    words = "subgraphs_per_accelerator = 2 has no effect with method dp, .*, only with objective latency"
    with pytest.raises(OptionError, match=words):
        ask(subgraphs_per_accelerator=2)
    assert not [note for note in ask("latency", subgraphs_per_accelerator=2) if "no effect" in note]


def test_levels_with_one_group() -> None:
    levels = (Level("server", {"gpu": 2}, 4.0),)
    graph, devices = (
        Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], 0.5),
        Devices((DeviceKind("gpu", 2),), levels=levels),
    )
    note = "level 'server' has one group: its slowdown has no effect"
    assert note in solve(graph, devices).notes
    assert note in evaluate(graph, devices, {0: "gpu0", 1: "gpu1"}).notes
    assert note in solve(graph, devices, "makespan", method="heft").notes
    two = Devices((DeviceKind("gpu", 2),), levels=(Level("server", {"gpu": 1}, 4.0),))
    assert not [note for note in solve(graph, two).notes if "one group" in note]


def test_replicas_of_kinds_with_one_device() -> None:
    alone = Devices((DeviceKind("gpu", 1),))
    notes = solve(GRAPH, alone, replicas=2).notes
    assert any(note.startswith("replicas = 2 has no effect") for note in notes)


def test_warm_starts_that_are_not_used() -> None:
    start = {0: "gpu0", 1: "gpu1", 2: "gpu1"}
    assert not [note for note in ask(warm_start=start) if "warm" in note]
    assert any(
        "warm_start = " in note and "no effect" in note for note in ask(method="heft", warm_start=start)
    )
    torn = {0: "gpu0", 1: "gpu1", 2: "gpu0"}
    assert any(note.startswith("the warm start is not used") for note in ask(warm_start=torn))


def test_shares_of_schedules_that_run_whole_backward_passes() -> None:
    found = simulate(GRAPH, DEVICES, dict.fromkeys(range(3), "gpu0"), "inference", 2, input_share=0.25)
    assert found.notes == ("input_share = 0.25 has no effect: inference runs whole backward passes",)


@pytest.mark.slow
def test_comparisons_give_each_method_what_it_knows() -> None:
    found = compare_methods(GRAPH, DEVICES, "makespan", methods=["heft", "etf"], refine=True, time_limit=2)
    assert all(one.plan is not None for one in found.compared)
    mixed = compare_methods(GRAPH, DEVICES, methods=["dp", "heft"], refine=True, time_limit=2)
    assert all(one.plan is not None for one in mixed.compared)
    with pytest.raises(OptionError, match="refine = True has no effect on any method compared"):
        compare_methods(GRAPH, DEVICES, methods=["dp", "dpl"], refine=True)


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    workload = "instances/gnmt_inference.json"
    assert main(["solve", workload, "--method", "dp", "--refine"]) == 2
    assert "refine = True has no effect with method dp" in capsys.readouterr().err
    assert main(["solve", workload, "--method", "dp", "--microbatches", "4"]) == 0
    assert "note: microbatches = 4 has no effect" in capsys.readouterr().out


def digraph(node: dict[str, Any], edge: dict[str, Any]) -> nx.DiGraph[str]:
    made: nx.DiGraph[str] = nx.DiGraph()
    made.add_node("a", time={"gpu": 1.0}, **node)
    made.add_node("b", time={"gpu": 1.0})
    made.add_edge("a", "b", **edge)
    return made


@pytest.mark.parametrize(
    ("node", "edge", "words"),
    [
        ({"sizes": 3.0}, {}, "nodes: attribute = 'sizes': is not an attribute; did you mean `size`"),
        ({"colour": 1}, {}, "did you mean `color`"),
        ({"Activations": 1.0}, {}, "did you mean `activations`"),
        ({}, {"costs": 3.0}, "edges: attribute = 'costs': is not an attribute; did you mean `cost`"),
    ],
)
def test_misspelt_attributes_of_networkx(node: dict[str, Any], edge: dict[str, Any], words: str) -> None:
    with pytest.raises(WorkloadError, match=words):
        from_networkx(digraph(node, edge))


def test_other_attributes_of_networkx_are_noted() -> None:
    devices = Devices((DeviceKind("gpu", 2),))
    plan = solve(digraph({"flops": 1e9}, {"cost": 1.0, "weight": 2.0}), devices)
    assert "attributes of the networkx graph that are not used: flops, weight" in plan.notes
    assert not solve(digraph({"size": 1.0}, {"cost": 2.0}), devices).notes
