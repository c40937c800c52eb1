"""The best plan under `expressible` is the best of all plans that the writer takes, by exhaustion."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner import (
    Constraints,
    DeviceGroup,
    DeviceKind,
    Devices,
    ExportError,
    Graph,
    GroupLink,
    InfeasibleError,
    OptionError,
    Plan,
    Workload,
    WorkloadError,
    evaluate,
    export,
    expressible,
    solve,
)
from partitioner.cli.command_line import main
from partitioner.exports.writers import TARGETS
from partitioner.formats.plan_record import evaluation_arguments, load_record
from partitioner.workload.graph import Extras
from tests.exports.models import cuts, decoder, gpus, line, planned

CHAINS = [name for name, target in TARGETS.items() if target.line]
FREE = [name for name, target in TARGETS.items() if not target.line]
NAMES = ("embed", "positions", "layers.0", "layers.1", "layers.2", "norm", "head")


def random_workload(seed: int, training: bool) -> Workload:
    """A decoder of at most six nodes, some modules of two nodes, with skips, tied weights and limits."""
    rng = np.random.default_rng(seed)
    names = [name for name in NAMES if name.startswith("layers") or rng.random() < 0.5]
    names = names[: max(2, 6 - int(rng.integers(0, 3)))]
    n = len(names)
    module = sorted([*range(n), *rng.integers(0, n, int(rng.random() < 0.4)).tolist()])[:6]
    count = len(module)
    edges = [(i, i + 1) for i in range(count - 1)]
    edges += [(i, j) for i in range(count) for j in range(i + 2, count) if rng.random() < 0.12]
    parameters = [0.0 if names[k] == "positions" else float(rng.integers(1, 4)) for k in module]
    tied = rng.integers(0, count, 2).tolist() if rng.random() < 0.4 else []
    graph = Graph.from_arrays(
        {"gpu": rng.integers(1, 9, count).astype(float)},
        edges,
        rng.integers(0, 4, len(edges)).astype(float),
        layer=[names[k] for k in module],
        parameters=parameters,
        extras=Extras(nodes=[{"sharedParameters": ["w"]} if i in tied else {} for i in range(count)]),
    )
    memory = float(rng.integers(5, 14)) if rng.random() < 0.3 else None
    workload = Workload(graph, gpus(int(rng.integers(2, 4)), memory))
    return workload if not training else Workload(mirrored(graph), workload.devices)


def mirrored(graph: Graph) -> Graph:
    """The graph with a backward node for each node."""
    n = len(graph)
    edges = graph.edges.tolist()
    back = [(2 * n - 1 - v, 2 * n - 1 - u) for u, v in edges]
    label = [graph.layer_labels[i] for i in graph.layer.tolist()]
    return Graph.from_arrays(
        {"gpu": [*graph.time[0], *graph.time[0][::-1]]},
        [*edges, *back, *((i, 2 * n - 1 - i) for i in range(n))],
        [*graph.cost, *graph.cost, *[0.0] * n],
        backward=[i >= n for i in range(2 * n)],
        color=[*range(n), *reversed(range(n))],
        layer=[*label, *reversed(label)],
        parameters=[*graph.parts[0], *[0.0] * n],
        extras=Extras(nodes=[*graph.extras.nodes, *[{}] * n]),
    )


def random_branches(seed: int) -> Workload:
    """At most six modules of an inference graph, with branches, skips, tied weights and limits."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 7))
    edges = [(i, j) for i in range(n) for j in range(i + 1, n) if rng.random() < 0.4]
    tied = rng.integers(0, n, 2).tolist()
    graph = Graph.from_arrays(
        {"gpu": rng.integers(0, 9, n).astype(float)},
        edges,
        rng.integers(0, 4, len(edges)).astype(float),
        layer=[f"part{i}" for i in range(n)],
        parameters=rng.integers(0, 3, n).astype(float),
        extras=Extras(nodes=[{"sharedParameters": ["w"]} if i in tied else {} for i in range(n)]),
    )
    return Workload(graph, gpus(int(rng.integers(2, 4)), float(rng.integers(3, 14))))


def takes(workload: Workload, plan: Plan, to: str) -> bool:
    """Whether the writer takes the plan; torch's takes training plans with skips, which are not searched."""
    try:
        found = export(workload, plan, to)
    except ExportError:
        return False
    return not (workload.graph.backward.any() and "tensors skip stages" in str(found))


def best_by_exhaustion(workload: Workload, to: str, chain: bool) -> float | None:
    """The least value over all placements, and for chains orders of stages, that the writer takes."""
    graph, devices = workload.graph, workload.devices
    some = cuts(decoder(1, 1), 4)
    forward = int((~graph.backward).sum())
    best = None
    for homes in product(range(len(devices.names)), repeat=forward):
        if any(home > max(homes[:i], default=-1) + 1 for i, home in enumerate(homes)):
            continue  # equal devices: the first occurrences ascend
        placement: dict[int | str, str] = {
            i: devices.names[homes[min(i, len(graph) - 1 - i) if i >= forward else i]]
            for i in range(len(graph))
        }
        found = evaluate(graph, devices, placement)
        if (
            found.violations
            or (chain and not found.shape.is_chain)
            or (best is not None and found.value >= best)
        ):
            continue
        orders: list[Any] = list(permutations(dict.fromkeys(placement.values()))) if chain else [()]
        base = replace(some, placement=placement, workload_sha256="", hardware=devices)
        for order in orders:
            plan = replace(base, stages=tuple(order))
            if chain and evaluate(graph, devices, placement, order=list(order)).violations:
                continue
            if takes(workload, plan, to):
                best = found.value
                break
    return best


def check(workload: Workload, to: str, chain: bool) -> str:
    """Compare `solve` with exhaustion; return what happened."""
    split = "chain" if chain else "free"
    expected = best_by_exhaustion(workload, to, chain)
    try:
        plan = solve(workload.graph, workload.devices, split=split, constraints=expressible(to))
    except InfeasibleError:
        assert expected is None
        return "infeasible"
    if not takes(workload, plan, to):  # the graph is none that the tool runs
        assert expected is None
        return "refused"
    assert plan.status == "optimal" and plan.value == pytest.approx(expected)
    free = solve(workload.graph, workload.devices, split=split)
    return "dearer" if plan.value > free.value + 1e-9 else "as good"


@pytest.mark.parametrize("to", CHAINS)
def test_the_best_chain_that_a_tool_can_express(to: str) -> None:
    first = 100 * CHAINS.index(to)
    seen = {check(random_workload(first + seed, seed % 3 == 0), to, True) for seed in range(12)}
    assert "as good" in seen  # the slow test sees what is dearer, too


@pytest.mark.slow
@pytest.mark.parametrize("to", CHAINS)
def test_the_best_chain_that_a_tool_can_express_often(to: str) -> None:
    seeds = range(1000, 1080)
    assert {"dearer", "as good"} <= {check(random_workload(seed, seed % 3 == 0), to, True) for seed in seeds}


def test_the_best_chain_of_branches_that_torch_can_express() -> None:
    """Its front end cuts the program, so that stages have consecutive modules."""
    assert {"dearer", "as good"} <= {check(random_branches(seed), "torch", True) for seed in range(20)}


@pytest.mark.slow
def test_the_best_chain_of_branches_that_torch_can_express_often() -> None:
    seeds = (*range(20, 40), *range(100, 300))
    assert {"dearer", "as good"} <= {check(random_branches(seed), "torch", True) for seed in seeds}


@pytest.mark.slow
@pytest.mark.parametrize("to", FREE)
def test_the_best_free_split_that_a_tool_can_express(to: str) -> None:
    found = {check(random_workload(seed, False), to, False) for seed in range(2000, 2008)}
    assert "as good" in found and ("dearer" in found) == (not TARGETS[to].anywhere)


def test_a_refusal_names_the_call_that_finds_a_plan() -> None:
    names = ["embed", "positions", *(f"layers.{i}" for i in range(4)), "head"]
    workload = line(names, gpus(2))
    with pytest.raises(ExportError, match=r"split='chain', constraints=partitioner\.expressible\('vllm'\)\)"):
        export(workload, cuts(workload, 1, 6), "vllm")
    plan = solve(workload.graph, workload.devices, split="chain", constraints=expressible("vllm"))
    assert export(workload, plan, "vllm") == "VLLM_PP_LAYER_PARTITION=1,3\n"


def test_the_default_split_for_accelerate_is_the_free_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The ends share weights: a chain has one stage, a free split uses all devices."""
    workload = decoder(4, 4, tied=(0, 6))
    path = tmp_path / "workload.json"
    workload.save(path)
    asked = ["solve", str(path), "--expressible", "accelerate", "--format", "json"]
    devices = []
    for further in ([], ["--split", "chain"]):
        assert main([*asked, *further]) == 0
        placement = json.loads(capsys.readouterr().out)["placement"]
        devices.append(len(set(placement.values())))
    assert devices == [4, 1]
    plan = cuts(workload, 3, 4)
    with pytest.raises(ExportError, match=r"split='free', constraints=partitioner\.expressible"):
        export(workload, plan, "accelerate")


def test_a_workload_that_no_plan_suits_gets_no_advice() -> None:
    workload = line(["embed", "layers.0", "pool", "layers.1"], gpus(2))
    with pytest.raises(ExportError) as error:
        export(workload, cuts(workload, 2, 2), "vllm")
    assert "expressible" not in str(error.value)


def test_several_kinds_need_a_choice() -> None:
    devices = Devices(
        (DeviceKind("gpu", 2), DeviceKind("old", 2), DeviceKind("cpu", 1, pays_communication=False))
    )
    workload = line(["embed", "layers.0", "layers.1", "head"], devices)
    with pytest.raises(
        WorkloadError, match=r"one_kind = True: needs one kind .* gpu \(2\), old \(2\), cpu \(1\)"
    ):
        solve(workload.graph, devices, constraints=expressible("megatron"))
    plan = solve(workload.graph, devices, constraints=expressible("megatron", kind="old"))
    assert set(plan.placement.values()) == {"old0", "old1"} and takes(workload, plan, "megatron")
    with pytest.raises(WorkloadError, match="one_kind = True: needs one kind with a memory of its own"):
        solve(workload.graph, devices, constraints=expressible("megatron", kind="cpu"))
    plan = solve(workload.graph, devices, split="free", constraints=expressible("accelerate"), time_limit=5)
    assert takes(workload, plan, "accelerate")


def test_vllm_takes_unlike_accelerators_but_no_cpus() -> None:
    kinds = (
        DeviceKind("gpu", 1),
        DeviceKind("old", 1, times="gpu", time_factor=2.0),
        DeviceKind("cpu", 2, times="gpu", time_factor=0.1, pays_communication=False),
    )
    workload = line(["embed", *(f"layers.{i}" for i in range(4)), "head"], Devices(kinds))
    plan = solve(workload.graph, workload.devices, constraints=expressible("vllm"))
    assert set(plan.placement.values()) == {"gpu0", "old0"} and plan.status == "optimal"
    *notes, variable = str(export(workload, plan, "vllm")).splitlines()
    assert variable == "VLLM_PP_LAYER_PARTITION=1,3" and all(line.startswith("# ") for line in notes)
    assert notes[0] == "# run with --pipeline-parallel-size 2 --tensor-parallel-size 1"
    assert notes[1:3] == ["# pipeline rank 0: old0, 1 layer", "# pipeline rank 1: gpu0, 3 layers"]
    with pytest.raises(ExportError, match="device gpu0: is of kind gpu, old0 of kind old"):
        export(workload, plan, "sglang")


def test_vllm_is_told_the_hosts() -> None:
    groups = (DeviceGroup("a", {"gpu": 1}), DeviceGroup("b", {"gpu": 1}, 1.0))
    devices = Devices((DeviceKind("gpu", 2),), groups=groups, links=(GroupLink(2.0),))
    workload = line(["embed", "layers.0", "layers.1", "head"], devices)
    plan = solve(workload.graph, devices, constraints=expressible("vllm"))
    text = str(export(workload, plan, "vllm"))
    assert "# pipeline rank 0: gpu1 in b, 1 layer\n# pipeline rank 1: gpu0 in a, 1 layer\n" in text
    assert "give hosts --node-rank in this order" in text


def test_replicas_are_refused_by_the_constraints() -> None:
    workload = decoder(2, 4)
    with pytest.raises(OptionError, match="replicas = 2: must be 1, the constraints say no_replicas"):
        solve(workload.graph, workload.devices, replicas=2, constraints=expressible("torch"))
    plan = cuts(workload, 2, 3)
    names = [str(label) for label in workload.graph.layer_labels]
    homes = dict(zip(names, plan.placement.values(), strict=True))
    copied = planned(workload, homes, order=plan.stages, replicas={"gpu0": ("gpu2",)})
    found = evaluate(workload.graph, None, copied, "throughput", constraints=expressible("torch"))
    assert "gpu2 holds a copy of a stage, which the constraints forbid" in found.violations


def test_what_depends_on_the_inputs_alone_may_skip_stages() -> None:
    """Seven modules on three devices: at most three on one; strictly, two devices at most, so four on one."""
    names = ["positions", *(f"layers.{i}" for i in range(6))]
    skips = [(0, i) for i in range(2, 7)]
    workload = line(names, gpus(3), skips=skips, parameters=[0, *[1] * 6])
    every = {"split": "chain", "constraints": expressible("torch")}
    plan = solve(workload.graph, workload.devices, **every)  # type: ignore[arg-type]
    assert len(plan.stages) == 3 and takes(workload, plan, "torch")
    strict = Constraints(neighbours_only=True)
    assert solve(workload.graph, workload.devices, constraints=strict).value > plan.value


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"to": "word"}, "to = 'word': must be one of torch,"),
        ({"to": "torch", "kind": 3}, "kind = 3: must be the name"),
    ],
)
def test_names_that_are_none(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        pt.expressible(**given)


def test_the_command_line_asks_for_what_a_tool_can_express(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["embed", "positions", *(f"layers.{i}" for i in range(4)), "head"]
    nodes = [
        {"id": i, "name": name, "supportedOnFpga": 1, "cpuLatency": 9, "fpgaLatency": 1, "size": 1}
        | {"isBackwardNode": 0, "layerId": name}
        for i, name in enumerate(names)
    ]
    edges = [{"sourceId": i, "destId": i + 1, "cost": 0} for i in range(len(names) - 1)]
    workload, plan = tmp_path / "workload.json", tmp_path / "plan.json"
    sizes = {"maxSizePerFPGA": 100, "maxFPGAs": 5, "maxCPUs": 0}
    workload.write_text(json.dumps(sizes | {"nodes": nodes, "edges": edges}), encoding="utf-8")
    for words, code in (([], 2), (["--expressible", "vllm"], 0)):
        assert main(["solve", str(workload), "--use-all-devices", *words, "--output", str(plan)]) == 0
        assert main(["export", str(workload), str(plan), "--to", "vllm"]) == code
    assert capsys.readouterr().out.endswith("VLLM_PP_LAYER_PARTITION=0,1,1,1,1\n")


def test_a_file_keeps_the_constraints(tmp_path: Path) -> None:
    workload = line(["embed", "layers.0", "pool", "layers.1", "head"], gpus(2))
    plan = solve(workload.graph, workload.devices, constraints=expressible("torchtitan"))
    plan.save(tmp_path / "plan.json")
    again = pt.load_plan(tmp_path / "plan.json")
    assert evaluate(workload.graph, None, again).feasible
    assert constraints_of(tmp_path / "plan.json", workload) == expressible("torchtitan")


def constraints_of(path: Path, workload: Workload) -> Constraints:
    """The constraints of a plan file, as the evaluation reads them."""
    terms = evaluation_arguments(load_record(path), workload.graph, (), {})
    found: Constraints = terms["constraints"]
    return found
