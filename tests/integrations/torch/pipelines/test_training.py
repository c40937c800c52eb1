"""Steps of an optimizer on the ranks of a pipeline give the parameters of the plain training, bit for bit."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="pipelines need torch's pipelining")
from partitioner.integrations.torch.pipelines.pipeline import PipelineRank  # noqa: E402
from partitioner.integrations.torch.pipelines.processes import in_processes  # noqa: E402
from partitioner.integrations.torch.pipelines.stages import stages_of  # noqa: E402
from tests.integrations.torch.pipelines.models import captured, cut_at  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
SECONDS = 120
STEPS, BATCHES, MICROBATCHES = 3, 2, 3
loss_of = torch.nn.functional.mse_loss


def batches(sample: Any) -> list[tuple[Any, Any]]:
    """All batches of the training in their order, with their targets."""
    torch.manual_seed(1)
    shape = (MICROBATCHES * sample.shape[0], *sample.shape[1:])
    return [(torch.randn(shape).double(), torch.randn(shape).double()) for _ in range(STEPS * BATCHES)]


def trained(
    parameters: Any, step: Any, given: list[tuple[Any, Any]], kind: Any = torch.optim.Adam
) -> list[Any]:
    """Train by steps after several batches whose gradients are accumulated; return the losses."""
    optimizer = kind(parameters, 0.01)
    losses = []
    for number, (batch, target) in enumerate(given, 1):
        losses += step(batch, target)
        if number % BATCHES == 0:
            optimizer.step()
            optimizer.zero_grad()
    return losses


@pytest.mark.parametrize(
    ("schedule", "homes"),
    [("1f1b", (0, 1)), pytest.param("gpipe", (0, 1, 0), marks=pytest.mark.slow)],
)
def test_adam_with_accumulated_gradients(schedule: str, homes: tuple[int, ...]) -> None:
    model, args, graph = captured("experts", training=True)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,) if len(homes) == 2 else (0.3, 0.6), homes))
    given = batches(args[0])

    def work(_: int) -> Any:
        rank = PipelineRank(stages, MICROBATCHES, schedule, loss_of)
        run = lambda batch, target: rank.step((batch,), target).losses  # noqa: E731
        losses = trained(rank.parameters(), run, given)
        own = {id(one) for one in rank.parameters()}
        return losses, {path: one.detach() for path, one in model.named_parameters() if id(one) in own}

    def plain(batch: Any, target: Any) -> list[Any]:
        parts = zip(batch.chunk(MICROBATCHES), target.chunk(MICROBATCHES), strict=True)
        losses = [loss_of(model(part), aim) for part, aim in parts]
        for each in losses:
            (each / MICROBATCHES).backward()
        return [one.detach() for one in losses]

    answers = in_processes(work, 2, seconds=SECONDS)
    before = {path: one.detach().clone() for path, one in model.named_parameters()}
    expected = trained(model.parameters(), plain, given)
    assert [float(one) for losses, _ in answers for one in losses] == [float(one) for one in expected]
    found = {path: one for _, own in answers for path, one in own.items()}
    for path, one in model.named_parameters():
        assert torch.equal(found[path], one) and not torch.equal(before[path], one), path


@pytest.mark.parametrize(
    ("schedule", "homes"),
    [
        ("1f1b", (0, 1)),
        pytest.param("gpipe", (0, 1, 2), marks=pytest.mark.slow),
        pytest.param("zb_h1", (0, 1), marks=pytest.mark.slow),
    ],
)
def test_copies_of_tied_weights_are_trained_as_one(schedule: str, homes: tuple[int, ...]) -> None:
    """Embedding and head share their weights and are on the first and the last device; gradients are sums."""
    model, args, graph = captured("gpt", training=True)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,) if len(homes) == 2 else (0.3, 0.6), homes))
    assert [devices for _, devices in stages.tied] == [("accelerator0", f"accelerator{homes[-1]}")]
    descent = torch.optim.SGD  # Adam divides by gradients that are 0 but for rounding
    torch.manual_seed(1)
    shape, like = (MICROBATCHES * args[0].shape[0], *args[0].shape[1:]), model(*args)
    given = [
        (torch.randint(0, 50, shape), torch.randn(shape[0], *like.shape[1:]).double())
        for _ in range(STEPS * BATCHES)
    ]

    def work(_: int) -> Any:
        rank = PipelineRank(stages, MICROBATCHES, schedule, loss_of)
        trained(rank.parameters(), lambda batch, target: rank.step((batch,), target).losses, given, descent)
        own = {id(one) for one in rank.parameters()}
        return {path: one.detach() for path, one in model.named_parameters() if id(one) in own}

    def plain(batch: Any, target: Any) -> list[Any]:
        parts = zip(batch.chunk(MICROBATCHES), target.chunk(MICROBATCHES), strict=True)
        for part, aim in parts:
            (loss_of(model(part), aim) / MICROBATCHES).backward()
        return []

    found = in_processes(work, len(homes), seconds=SECONDS)
    trained(model.parameters(), plain, given, descent)
    for path, one in model.named_parameters():
        copies = [own[path] for own in found if path in own]
        assert len(copies) == (2 if path == "tokens.weight" else 1), path
        assert all(torch.equal(copies[0], copy) for copy in copies)
        assert torch.allclose(copies[0], one, rtol=1e-9, atol=1e-12), path
