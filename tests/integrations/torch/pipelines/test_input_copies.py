"""Stages compute masks themselves: outputs and gradients are those of the model, and no mask is sent."""

from __future__ import annotations

from typing import Any

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="pipelines need torch's pipelining")
from partitioner.integrations.torch import graph_of  # noqa: E402
from partitioner.integrations.torch.pipelines import in_processes, run_pipeline, stages_of  # noqa: E402
from tests.integrations.torch.graphs.test_of_inputs import Masked  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
SPEED: dict[str, Any] = {"device": "A100-40", "bandwidth": 1e9, "efficiency": 0.01}
TOKENS, KNOWN = torch.arange(16).reshape(2, 8), torch.tensor([[1] * 8, [1] * 6 + [0] * 2])
ARGS = TOKENS, KNOWN
BATCH = tuple(torch.cat([one, one.flip(0)]) for one in ARGS)


def loss_of(output: Any, target: Any) -> Any:
    return torch.nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def planned(model: Any, count: int, choice: str, **training: Any) -> tuple[pt.Graph, pt.Plan]:
    graph = graph_of(model, ARGS, **SPEED, **training)
    plan = pt.solve(graph, pt.Devices.accelerated(count), split="chain", input_operators=choice)
    return graph, plan


@pytest.mark.parametrize("count", [2, 3])
def test_outputs_without_sending_masks(count: int) -> None:
    model = Masked(learned=False)
    stages = {choice: stages_of(model, ARGS, *planned(model, count, choice)) for choice in ("sent", "copied")}
    masks = {choice: [tensor for stage in found.modules[1:] for tensor in stage.inputs
                      if tensor.dtype == torch.bool] for choice, found in stages.items()}  # fmt: skip
    assert masks["sent"] and not masks["copied"]
    copied = stages["copied"]
    assert [stage.given for stage in copied.modules[1:]] == [("known",)] * (count - 1)

    def work(_: int) -> Any:
        return run_pipeline(copied, BATCH, microbatches=2).output

    *_, found = in_processes(work, count, seconds=120)
    assert torch.equal(found, model(*BATCH))


@pytest.mark.parametrize(
    ("schedule", "recompute"),
    [("1f1b", False), pytest.param("1f1b", True, marks=pytest.mark.slow), ("zb_h1", False)],
)
def test_gradients(schedule: str, recompute: bool) -> None:
    model, target = Masked(learned=False), BATCH[0] % 7
    training: dict[str, Any] = {"training": True, "loss": loss_of, "targets": (TOKENS % 7,)}
    stages = stages_of(model, ARGS, *planned(model, 2, "copied", **training), recompute=recompute)

    def work(_: int) -> Any:
        run_pipeline(stages, BATCH, target, microbatches=2, schedule=schedule, loss=loss_of)
        return {path: one.grad for path, one in model.named_parameters() if one.grad is not None}

    answers = in_processes(work, 2, seconds=120)
    loss_of(model(*BATCH), target).backward()
    found = {path: grad for one in answers for path, grad in one.items()}
    for path, one in model.named_parameters():
        assert torch.allclose(found[path], one.grad, rtol=1e-5, atol=1e-7), path


def test_what_depends_on_a_parameter_is_sent() -> None:
    """Nothing of this model's masks can be copied but the part before the embedding comes in."""
    model = Masked(learned=True)
    stages = stages_of(model, ARGS, *planned(model, 2, "copied"))

    def work(_: int) -> Any:
        return run_pipeline(stages, BATCH, microbatches=2).output

    *_, found = in_processes(work, len(stages.devices), seconds=120)
    assert torch.equal(found, model(*BATCH))
