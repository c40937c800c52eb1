"""Checkpoints are placed and pipelined bit-equal; backward passes that torch forgets are refused."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner import WorkloadError

torch = pytest.importorskip("torch", reason="models need torch")
from torch import nn  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

from partitioner.integrations.torch import graph_of, place  # noqa: E402
from partitioner.integrations.torch.pipelines.stages import stages_of  # noqa: E402
from tests.integrations.torch.placing.models import gradients, scattered  # noqa: E402


class Recomputing(nn.Module):  # type: ignore[misc]
    """Blocks of which the inner one is computed again in the backward pass, with the same random numbers."""

    def __init__(self, use_reentrant: bool = False) -> None:
        super().__init__()
        self.first, self.inner, self.last = (nn.Linear(4, 4) for _ in range(3))
        self.drop, self.use_reentrant = nn.Dropout(0.5), use_reentrant

    def _block(self, x: Any) -> Any:
        return self.drop(torch.tanh(self.inner(x))).sin()

    def forward(self, x: Any) -> Any:
        return self.last(checkpoint(self._block, self.first(x), use_reentrant=self.use_reentrant))


class Straight(torch.autograd.Function):  # type: ignore[misc, name-defined]
    """Rounds, and lets gradients through as if it did not."""

    @staticmethod
    def forward(ctx: Any, tensor: Any) -> Any:
        return tensor.round()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


class Rounded(nn.Module):  # type: ignore[misc]
    """A layer whose output is rounded."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return Straight.apply(self.layer(x))


ARGS = (torch.randn(3, 4, dtype=torch.float64),)
OPTIONS: dict[str, Any] = {"device": "CPU", "dtype": "float32", "bandwidth": 1e9}


def made(kind: Any, *given: Any) -> Any:
    torch.manual_seed(0)
    return kind(*given).double()


@pytest.mark.parametrize("seed", range(3))
def test_checkpoints_are_placed_and_pipelined(seed: int) -> None:
    """The program keeps what the model computes again; outputs and gradients are bit-equal."""
    model = made(Recomputing)
    found = graph_of(model, ARGS, training=True, **OPTIONS)
    placement = scattered(found, 2, seed)
    _, want = gradients(made(Recomputing), ARGS)
    _, placed = gradients(place(model, ARGS, found, placement), ARGS)

    def staged(*args: Any) -> Any:
        for stage in stages_of(model, ARGS, found, placement).modules:
            args = stage(*args)
        return args[0]

    _, pipelined = gradients(model, ARGS, staged)
    assert all(
        torch.equal(placed[path], one) and torch.equal(pipelined[path], one) for path, one in want.items()
    )


@pytest.mark.parametrize(
    ("model", "name"), [(made(Recomputing, True), "CheckpointFunction"), (made(Rounded), "Straight")]
)
def test_backward_passes_that_torch_forgets_are_refused(model: Any, name: str) -> None:
    """A graph for inference has no backward pass, and neither has a model without trainable parameters."""
    message = f"model: torch.autograd.Function {name}: has a backward pass of its own"
    with pytest.raises(WorkloadError, match=message):
        graph_of(model, ARGS, training=True, **OPTIONS)
    found = graph_of(model, ARGS, **OPTIONS)
    with pytest.raises(WorkloadError, match=message):
        place(model, ARGS, found, scattered(found, 2, 0))
    model.requires_grad_(False)
    assert torch.equal(place(model.eval(), ARGS, found, scattered(found, 2, 0))(*ARGS), model(*ARGS))
