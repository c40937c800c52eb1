"""From a torch model to its graph, a plan, its split points, and stages that compute what the model does."""

from __future__ import annotations

import copy
import json
from functools import cache
from itertools import product
from typing import Any

import pytest

import partitioner as pt
from partitioner.integrations.torch import graph_of

torch = pytest.importorskip("torch", reason="round trips of torch's models need torch")
pipelining = pytest.importorskip("torch.distributed.pipelining", reason="round trips need torch's pipelining")
from tests.integrations.torch.models import made  # noqa: E402

WAYS = [
    *product(("cnn", "gpt", "unet", "experts", "mixture"), (False, True), (2, 3, 4)),
    ("resnet50", False, 3),
    ("resnet50", True, 4),
]


@cache
def graph(name: str, training: bool) -> pt.Graph:
    model, args = made(name)
    model.train(training)
    return graph_of(
        model, args, device="CPU", dtype="float32", bandwidth=1e12, training=training, granularity="block"
    )


def planned(name: str, training: bool, stages: int | None, devices: int) -> tuple[pt.Workload, pt.Plan]:
    """The workload of a model by blocks, and the best plan of so many stages for torch."""
    workload = pt.Workload(graph(name, training), pt.Devices.accelerated(devices, cpus=0))
    constraints = pt.Constraints(**{**pt.expressible("torch").as_dict(), "stages": stages})
    return workload, pt.solve(workload.graph, workload.devices, constraints=constraints)


def pieces(model: Any, args: tuple[Any, ...], points: list[str]) -> Any:
    """What torch's front end makes of a copy of the model, which it changes, at the split points."""
    spec = dict.fromkeys(points, pipelining.SplitPoint.BEGINNING)
    return pipelining.pipeline(copy.deepcopy(model), args, split_spec=spec)


def has_the_modules(pipe: Any, model: Any, stages: list[list[str]]) -> None:
    """Each piece has the parameters of the modules of its stage, and no others."""
    named = dict(model.named_parameters(remove_duplicate=False))
    number = {id(tensor): i for i, tensor in enumerate(named.values())}
    of = {name: number[id(tensor)] for name, tensor in named.items()}
    assert pipe.num_stages == len(stages)
    for i, modules in enumerate(stages):
        own = {of[name] for name in named if any(f"{name}.".startswith(f"{each}.") for each in modules)}
        found = {of[name] for name, _ in pipe.get_stage_module(i).named_parameters(remove_duplicate=False)}
        assert found == own


def check(name: str, training: bool, stages: int | None, devices: int) -> dict[str, Any]:
    """Outputs, buffers and gradients of the pieces are those of the model, bit for bit; what was exported."""
    model, args = made(name)
    model.train(training)
    workload, plan = planned(name, training, stages, devices)
    exported: dict[str, Any] = json.loads(pt.export(workload, plan, "torch"))
    assert set(exported["split_points"]) <= {path for path, _ in model.named_modules()}
    pipe = pieces(model, args, exported["split_points"])
    has_the_modules(pipe, model, exported["stages"])
    with torch.set_grad_enabled(training):
        # `pipe(...)` cuts what autograd records at the boundaries, whose gradients a schedule hands on
        run = torch.fx.Interpreter(pipe.split_gm).run if training else pipe
        found, expected = run(*args), model(*args)
    found = found[0] if isinstance(found, tuple) else found
    assert torch.equal(found, expected)
    if training:
        found.square().sum().backward()
        expected.square().sum().backward()
        same_gradients(pipe, model)
    return exported


def same_gradients(pipe: Any, model: Any) -> None:
    """Every parameter of the model is in a piece, with its gradient; every buffer with its value."""
    made_of = [pipe.get_stage_module(i) for i in range(pipe.num_stages)]
    found = {name: tensor.grad for part in made_of for name, tensor in part.named_parameters()}
    for name, tensor in model.named_parameters():
        assert torch.equal(found[name], tensor.grad)
    buffers = {name: tensor for part in made_of for name, tensor in part.named_buffers()}
    for name, tensor in model.named_buffers():
        assert torch.equal(buffers[name], tensor)


@pytest.mark.parametrize(("name", "training"), [("cnn", True), ("gpt", False), ("unet", False)])
def test_the_stages_of_a_plan_compute_what_the_model_does(name: str, training: bool) -> None:
    """Batch normalisation and gradients; tied weights; skips."""
    check(name, training, 2 if training else 3, 3)


def test_tied_weights_are_copied_for_inference_and_refused_for_training() -> None:
    """Torch's front end does not exchange the gradients of the copies."""
    exported = check("gpt", False, 2, 2)
    note = "stages 0, 1 each have a copy of parameter tokens.weight: for inference only, gradients differ"
    assert exported["notes"] == [note]
    workload = pt.Workload(graph("gpt", True), pt.Devices.accelerated(2, cpus=0))
    free = pt.solve(workload.graph, workload.devices)
    message = "parameter tokens.weight: is shared by tokens of stage 0 and head of stage 1: tied weights must"
    with pytest.raises(pt.ExportError, match=message) as error:
        pt.export(workload, free, "torch")
    assert "constraints=partitioner.expressible('torch')" in str(error.value)
    _, together = planned("gpt", True, None, 2)
    assert json.loads(pt.export(workload, together, "torch"))["split_points"] == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "training", "stages"), WAYS)
def test_the_stages_of_all_models_compute_what_they_do(name: str, training: bool, stages: int) -> None:
    if training and name == "gpt":
        exported = check(name, True, None, stages)
        assert exported["split_points"] == []
    elif training and name == "experts" and stages == 4:  # the router sends to more than one of these
        with pytest.raises(pt.InfeasibleError, match="neighbours_only"):
            check(name, True, stages, stages)
    else:
        exported = check(name, training, stages, stages)
        assert len(exported["stages"]) == stages
