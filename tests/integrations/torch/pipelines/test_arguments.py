"""Pipelines take arguments by name and constants, and return what the model returns, of a whole batch."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import OptionError

torch = pytest.importorskip("torch", reason="pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="pipelines need torch's pipelining")
from partitioner.integrations.torch import graph_of  # noqa: E402
from partitioner.integrations.torch.pipelines.pipeline import run_pipeline  # noqa: E402
from partitioner.integrations.torch.pipelines.processes import in_processes  # noqa: E402
from partitioner.integrations.torch.pipelines.stages import PipelineStages, stages_of  # noqa: E402
from tests.integrations.torch.pipelines.models import cut_at, masked  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
SECONDS = 60
MICROBATCHES = 4


def staged(training: bool) -> tuple[Any, PipelineStages, tuple[Any, ...], dict[str, Any]]:
    """The model, its stages on two devices, and the arguments of a batch."""
    model, args, kwargs = masked()
    graph = graph_of(model, args, kwargs, device="CPU", dtype="float32", bandwidth=1e9, training=training)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,), (0, 1)), kwargs=kwargs)
    torch.manual_seed(1)
    x = {key: torch.randn(2 * MICROBATCHES, 3, 6, dtype=torch.float64) for key in ("first", "second")}
    return model, stages, (x, 2), kwargs


def whole(model: Any, batch: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """What the model returns for each microbatch."""
    parts = [{key: one.chunk(MICROBATCHES)[i] for key, one in batch[0].items()} for i in range(MICROBATCHES)]
    return [model(part, *batch[1:], **kwargs) for part in parts]


def test_inference_returns_what_the_model_returns() -> None:
    """Tensors are joined, numbers become a vector, constants stay, and a parameter comes with each part."""
    model, stages, batch, kwargs = staged(training=False)

    def work(rank: int) -> Any:
        given = (batch, kwargs) if rank == 0 else ((), None)
        return run_pipeline(stages, given[0], kwargs=given[1], microbatches=MICROBATCHES).output

    first, found = in_processes(work, 2, seconds=SECONDS)
    with torch.no_grad():
        expected = whole(model, batch, kwargs)
    assert first is None
    assert list(found) == ["found", "parts", "mean", "name", "no"]
    assert (found["name"], found["no"]) == ("this", None)
    assert torch.equal(found["found"], torch.cat([one["found"] for one in expected]))
    assert torch.equal(found["mean"], torch.stack([one["mean"] for one in expected]))
    for i, part in enumerate(found["parts"]):
        assert torch.equal(part, torch.cat([one["parts"][i] for one in expected]))


def loss_of(found: Any, target: Any) -> Any:
    return (found["found"] - target).square().mean() + found["parts"][1].sum()


def test_the_loss_gets_what_the_model_returns() -> None:
    model, stages, batch, kwargs = staged(training=True)
    target = torch.randn(2 * MICROBATCHES, 3, 6, dtype=torch.float64)

    def work(_: int) -> Any:
        options: Any = {"kwargs": kwargs, "microbatches": MICROBATCHES, "loss": loss_of}
        step = run_pipeline(stages, batch, target, **options)
        return step.losses, {path: one.grad for path, one in model.named_parameters() if one.grad is not None}

    answers = in_processes(work, 2, seconds=SECONDS)
    for found, aim in zip(whole(model, batch, kwargs), target.chunk(MICROBATCHES), strict=True):
        (loss_of(found, aim) / MICROBATCHES).backward()
    gradients = {path: grad for _, grads in answers for path, grad in grads.items()}
    assert len(answers[1][0]) == MICROBATCHES
    assert all(torch.equal(gradients[path], one.grad) for path, one in model.named_parameters())


@pytest.mark.parametrize(
    ("batch", "kwargs", "message"),
    [
        ({}, {"mask": None}, r"kwargs = \['mask'\]: must be \['mask', 'name', 'scale'\], as captured"),
        ({"power": 3}, {}, "batch: argument 3 = 3: must be 2, as captured"),
        ({}, {"name": "that"}, "batch: argument 5 = 'that': must be 'this', as captured"),
        ({"samples": 5}, {}, r"argument 1 is a tensor of shape \[5, 3, 6\]: must be .* \[8, 3, 6\] for 4 "),
        ({"second": 7}, {}, r"argument 2 is 7: must be a tensor of shape \[8, 3, 6\]"),
        ({"more": 7}, {}, "batch with 7 values: must have the 6 values of the call that was captured"),
    ],
)
def test_arguments_of_another_form_are_refused(
    batch: dict[str, Any], kwargs: dict[str, Any], message: str
) -> None:
    _, stages, (x, power), known = staged(training=False)
    x = {key: one[: batch.get("samples", 8)] for key, one in x.items()}
    x |= {key: value for key, value in batch.items() if key in ("second", "more")}
    named = kwargs if kwargs.get("mask", 0) is None else known | kwargs
    with pytest.raises(OptionError, match=message):
        stages.form.tensors((x, batch.get("power", power)), named, MICROBATCHES)
