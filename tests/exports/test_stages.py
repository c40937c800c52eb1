"""Every module of a plan is in exactly one stage, in forward order; else a message says what is wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from partitioner import DeviceKind, Devices, ExportError, Graph, InfeasibleError, Workload, expressible, solve
from partitioner.exports.module_stages import Stages
from partitioner.exports.stages import stages_of
from partitioner.exports.target import LOOP, ONE, Target
from partitioner.workload.graph import Extras
from tests.exports.models import cuts, decoder, gpus, line, planned

ANY = Target("any")
LINE = Target("line", line=True)


def random_case(seed: int) -> tuple[Workload, dict[int, str], list[int]]:
    """A random graph of modules with several nodes each, and a placement, often one of whole modules."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 12)), int(rng.integers(1, 6))
    module = np.sort(rng.integers(0, m, n)) if rng.random() < 0.7 else rng.integers(0, m, n)
    edges = [(i, j) for j in range(n) for i in range(j) if rng.random() < (0.9 if j == i + 1 else 0.1)]
    graph = Graph.from_arrays({"gpu": [1.0] * n}, edges, layer=[f"m{k}" for k in module.tolist()])
    home = np.sort(rng.integers(0, 3, m)) if rng.random() < 0.5 else rng.integers(0, 3, m)
    device = home[module]
    if rng.random() < 0.2:
        device[rng.integers(n)] = rng.integers(3)
    placement = {i: f"gpu{d}" for i, d in enumerate(device.tolist())}
    return Workload(graph, gpus(3)), placement, module.tolist()


def is_cut(placement: dict[int, str], module: list[int]) -> bool:
    return any(placement[i] != placement[j] for i in placement for j in placement if module[i] == module[j])


def skips(workload: Workload, found: Stages) -> bool:
    """Whether an edge leads to another stage than its own or the next one, by the names of modules."""
    stage = {name: number for number, each in enumerate(found.stages) for name in each.modules}
    label = [str(workload.graph.layer_labels[i]) for i in workload.graph.layer.tolist()]
    return any(stage[label[v]] - stage[label[u]] not in (0, 1) for u, v in workload.graph.edges.tolist())


@pytest.mark.parametrize("block", range(4))
def test_random_placements_are_stages_or_refused(block: int) -> None:
    """One target takes all placements of whole modules, the other one only those in which no edge skips."""
    outcomes = set()
    for seed in range(100 * block, 100 * block + 100):
        workload, placement, module = random_case(seed)
        if is_cut(placement, module):
            with pytest.raises(ExportError, match="a module must be on one device"):
                stages_of(workload, placement, ANY)
            outcomes.add("cut")
            continue
        found = stages_of(workload, placement, ANY)
        assert sorted(found.modules) == sorted({f"m{k}" for k in module})
        assert all(one.device != other.device for one, other in pairwise(found.stages))
        for i, number in enumerate(found.of.tolist()):
            assert f"m{module[i]}" in found.stages[number].modules
            assert found.stages[number].device == placement[i]
        if skips(workload, found):
            with pytest.raises(ExportError, match="a stage sends tensors to the next one only"):
                stages_of(workload, placement, LINE)
            outcomes.add("skip")
        else:
            assert stages_of(workload, placement, LINE).stages == found.stages
            outcomes.add("line")
    assert outcomes == {"cut", "skip", "line"}


def test_backward_nodes_belong_to_the_stage_of_their_module() -> None:
    workload = decoder(2, 2, training=True)
    found = stages_of(workload, cuts(workload, 2, 3), LINE)
    assert [stage.modules for stage in found.stages] == [("embed", "layers.0"), ("layers.1", "norm", "head")]
    assert found.of.tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 0, 0]


def test_without_layers_titles_are_modules_and_colours_join_the_passes() -> None:
    graph = Graph.from_arrays(
        {"gpu": [1.0] * 4},
        [(0, 1), (1, 2), (2, 3)],
        backward=[False, False, True, True],
        color=[0, 1, 1, 0],
        names=["a", "b", "b'", "a'"],
    )
    found = stages_of(Workload(graph, gpus(2)), {0: "gpu0", 1: "gpu1", 2: "gpu1", 3: "gpu0"}, LINE)
    assert [stage.modules for stage in found.stages] == [("a",), ("b",)]
    assert found.of.tolist() == [0, 1, 1, 0]


def test_the_order_of_the_plan_counts_where_the_graph_leaves_it_open() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, layer=["a", "b"])
    plan = planned(Workload(graph, gpus(2)), {"a": "gpu1", "b": "gpu0"}, order=("gpu0", "gpu1"))
    assert stages_of(Workload(graph, gpus(2)), plan, LINE).modules == ("b", "a")


def test_what_depends_on_the_inputs_alone_may_go_to_every_stage() -> None:
    """As the tables of positions of a decoder: they have no parameters; an embedding has."""
    names = ["positions", "layers.0", "layers.1", "layers.2"]
    skips_of = [(0, 2), (0, 3)]
    of_inputs = line(names, gpus(3), skips=skips_of, parameters=[0, 1, 1, 1])
    assert len(stages_of(of_inputs, cuts(of_inputs, 2, 1, 1), LINE).stages) == 3
    learned = line(names, gpus(3), skips=skips_of)
    lists = Extras(nodes=[{"ofInputs": [2, 3, "none", None]}, {"ofInputs": 1}, {}, {}])
    listed = replace(learned, graph=replace(learned.graph, extras=lists))
    assert len(stages_of(listed, cuts(listed, 2, 1, 1), LINE).stages) == 3
    three = replace(expressible("deepspeed"), stages=3)
    assert len(solve(listed.graph, listed.devices, constraints=three).stages) == 3
    with pytest.raises(InfeasibleError):
        solve(learned.graph, learned.devices, constraints=three)
    with pytest.raises(ExportError, match=r"module positions: of stage 0 sends a tensor to layers\.2 of"):
        stages_of(learned, cuts(learned, 2, 1, 1), LINE)


def refusal(workload: Workload, plan: Any, target: Target) -> str:
    with pytest.raises(ExportError) as error:
        stages_of(workload, plan, target)
    return str(error.value)


def test_a_refusal_names_the_module_and_the_call_that_finds_a_plan() -> None:
    workload = decoder(2, 2)
    plan = cuts(workload, 2, 3)
    torn = {**plan.placement, 1: "gpu1"} | {0: "gpu0"}
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)], layer=["layers.0"] * 2)
    text = refusal(Workload(graph, gpus(2)), {0: "gpu0", 1: "gpu1"}, LINE)
    assert text.splitlines() == [
        "line: module layers.0: is on gpu0, its node 1 on gpu1: a module must be on one device",
        "solve(..., split='chain', constraints=partitioner.expressible('line')), or partitioner solve "
        "--expressible line, finds the best plan that can be expressed",
    ]
    assert stages_of(workload, torn, LINE).stages[0].modules == ("embed",)


def test_several_stages_on_a_device_are_refused_where_it_cannot_have_them() -> None:
    workload = decoder(3, 2)
    twice = cuts(workload, 1, 1, 1, 3, devices=["gpu0", "gpu1"] * 2)
    assert stages_of(workload, twice, Target("loop", line=True, ranks=LOOP)).rank_of == (0, 1, 0, 1)
    text = refusal(workload, twice, Target("one", line=True, ranks=ONE))
    assert "stage 2 (from module layers.1): is on gpu0: a device has one stage" in text
    mirrored = cuts(workload, 1, 1, 4, devices=["gpu0", "gpu1", "gpu0"])
    text = refusal(workload, mirrored, Target("loop", line=True, ranks=LOOP))
    assert "number of stages: 3: must be a multiple of the 2 devices" in text
    assert stages_of(workload, mirrored, LINE).rank_of == (0, 1, 0)


def test_replicas_are_refused() -> None:
    workload = decoder(2, 3)
    plan = cuts(workload, 2, 3)
    copied = planned(
        workload,
        {name: plan.placement[i] for i, name in enumerate(map(str, workload.graph.layer_labels))},
        order=("gpu0", "gpu1"),
        replicas={"gpu0": ("gpu2",)},
    )
    assert "device gpu2: holds a copy of a stage" in refusal(workload, copied, LINE)


def test_tied_weights_are_refused_where_they_cannot_be_shared() -> None:
    workload = decoder(2, 2, tied=(0, 4), training=True)
    plan = cuts(workload, 2, 3)
    assert "parameter weight: is shared by embed of stage 0 and head of stage 1" in refusal(
        workload, plan, LINE
    )
    assert len(stages_of(workload, plan, Target("tied", ties=True)).stages) == 2
    assert len(stages_of(workload, cuts(workload, 5), LINE).stages) == 1


def test_unequal_kinds_and_cpus_are_refused_where_all_must_be_equal() -> None:
    kinds = (DeviceKind("gpu", 1), DeviceKind("old", 1), DeviceKind("cpu", 1, pays_communication=False))
    workload = line(["a", "b", "c"], Devices(kinds))
    plan = planned(workload, {"a": "gpu0", "b": "old0", "c": "cpu0"}, order=("gpu0", "old0", "cpu0"))
    text = refusal(workload, plan, Target("equal", line=True, one_kind=True))
    assert "device old0: is of kind old, gpu0 of kind gpu; all must be of one kind" in text
    assert "device cpu0: has no memory of its own" in text
    assert len(stages_of(workload, plan, LINE).stages) == 3


def test_a_device_without_a_stage_is_refused() -> None:
    """It holds a backward node that belongs to no module; with an edge it would belong to node 0."""
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, backward=[False, True])
    text = refusal(Workload(graph, gpus(2)), {0: "gpu0", 1: "gpu1"}, ANY)
    assert "device gpu1: holds node 1: has backward nodes only, so that it has no stage" in text


def test_a_name_of_two_modules_is_refused() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, [(0, 1)], names=["relu", "relu"])
    text = refusal(Workload(graph, gpus(2)), {0: "gpu0", 1: "gpu1"}, ANY)
    assert "module relu: is the name of 2 modules" in text


def test_a_graph_without_forward_nodes_is_refused() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 2}, backward=True)
    strict = Target("strict", line=True, ranks=LOOP, one_kind=True, blocks=True)
    text = refusal(Workload(graph, gpus(2)), {0: "gpu0", 1: "gpu0"}, strict)
    assert text == "strict: graph: has no forward nodes, and so no modules"


def test_many_flaws_are_counted() -> None:
    graph = Graph.from_arrays({"gpu": [1.0] * 60}, layer=[f"m{i // 2}" for i in range(60)])
    text = refusal(Workload(graph, gpus(2)), {i: f"gpu{i % 2}" for i in range(60)}, ANY)
    assert "any: ... and 10 more" in text
