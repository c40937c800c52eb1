"""Further models that are hard to place, and plans of models by seeds."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

import partitioner as pt
from partitioner.integrations.torch import graph_of
from tests.integrations.torch.models import MODELS

BANDWIDTH = 1e14  # bytes per second, so that plans use several devices


class Translator(nn.Module):  # type: ignore[misc]
    """Recurrent layers with attention of the decoder to the encoder, and residuals, as GNMT has them."""

    def __init__(self, width: int = 6, layers: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(11, width)
        self.encoder = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers))
        self.decoder = nn.ModuleList(nn.LSTM(2 * width, width, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, 11)

    def forward(self, x: Any) -> Any:
        read = self.words(x)
        for layer in self.encoder:
            read = read + layer(read)[0]
        found = self.words(x.flip(1))
        for layer in self.decoder:
            seen = (found @ read.transpose(1, 2)).softmax(-1) @ read
            found = found + layer(torch.cat([found, seen], -1))[0]
        return self.head(found)


class Reread(nn.Module):  # type: ignore[misc]
    """A tensor and a weight with many readers, and normalisation that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = nn.Linear(5, 5), nn.Linear(5, 5)
        self.again.weight = self.first.weight
        self.norm = nn.BatchNorm1d(5)

    def forward(self, x: Any) -> Any:
        seen = self.norm(self.first(x))
        parts = [torch.sin(seen), torch.cos(seen), torch.exp(seen), torch.tanh(seen), seen * 3.7]
        found = self.norm(self.again(sum(parts) + seen))
        return self.first(found) + self.again(seen)


class Rewritten(nn.Module):  # type: ignore[misc]
    """Tensors that are written after others have read them, also through views; constants."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.dead = nn.Linear(4, 4), nn.Linear(2, 2)
        self.register_buffer("scale", torch.full((4,), 1.5), persistent=False)
        self.register_buffer("mean", torch.ones(()))
        self.register_buffer("calls", torch.zeros(()))
        self.weights = torch.arange(4.0)

    def forward(self, x: Any) -> Any:
        start = self.mean + 1
        with torch.no_grad():
            factor = self.scale.to(x.dtype) * 2
            self.mean.mul_(0.5).add_(x.mean() + 1)
        self.calls.add_(1)
        made = self.inner(x).clone()
        before = made + 1
        view = made.view(-1)
        made[:, 0] = made[:, 1] * torch.tensor([2.0], dtype=x.dtype)
        made.add_(0.25)
        return (
            before * made
            + view.view_as(made) * factor
            + self.weights.to(x.dtype)
            + self.calls * self.mean
            + start
        )


class Constants(nn.Module):  # type: ignore[misc]
    """Tensors that are no buffers: attributes of modules, in a list, and in the code."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)
        self.last.shift = torch.arange(4.0, dtype=torch.float64)
        self.scale = torch.full((4,), 1.5, dtype=torch.float64)
        self.weights = [torch.ones(4, dtype=torch.float64) / 3]

    def forward(self, x: Any) -> Any:
        found = self.first(x * self.scale) * torch.tensor([2.0, 1.0, 0.5, 3.0], dtype=x.dtype)
        found = self.last(found + torch.tensor(3.0, dtype=x.dtype) * self.weights[0])
        return (found + self.last.shift).sin() + self.scale


class Keyed(nn.Module):  # type: ignore[misc]
    """Arguments by name, several outputs, and numbers drawn at random."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.drop = nn.Linear(4, 8), nn.Linear(8, 4), nn.Dropout(0.5)

    def forward(self, x: Any, *, more: dict[str, Any]) -> Any:
        wide = self.drop(self.up(x))
        noisy = self.drop(torch.relu(wide) + more["bias"])
        return {"found": self.down(noisy), "wide": wide, "count": 2}


FURTHER: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "translator": (Translator, lambda: torch.randint(0, 11, (2, 5))),
    "reread": (Reread, lambda: torch.randn(6, 5)),
    "rewritten": (Rewritten, lambda: torch.randn(3, 4)),
    "constants": (Constants, lambda: torch.randn(3, 4)),
}
ALL = MODELS | FURTHER  # by name: a model, and what makes the argument of a call


def doubled(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model with numbers of 64 bits, and the arguments of a call."""
    model, sample = ALL[name]
    torch.manual_seed(0)
    found, argument = model().double(), sample()
    return found, (argument.double() if argument.is_floating_point() else argument,)


@cache
def graph(name: str, training: bool = False, granularity: str = "operator") -> pt.Graph:
    """Return the graph of a model of 64 bits."""
    model, args = doubled(name)
    return graph_of(
        model, args, device="H100", bandwidth=BANDWIDTH, training=training, granularity=granularity
    )


def scattered(found: pt.Graph, count: int, seed: int) -> dict[Any, str]:
    """Return a random placement on `count` devices that keeps colour classes together."""
    rng = random.Random(seed)
    chosen: dict[Any, str] = {}
    return {
        node: chosen.setdefault(colour if colour >= 0 else node, f"accelerator{rng.randrange(count)}")
        for node, colour in zip(found.ids, found.color.tolist(), strict=True)
    }


def gradients(
    model: Any, args: tuple[Any, ...], call: Callable[..., Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Return the output of a call, and all gradients and buffers after a backward pass."""
    torch.manual_seed(1)
    output = (model if call is None else call)(*args)
    torch.manual_seed(2)
    (output * torch.randn(output.shape, dtype=output.dtype).to(output.device)).sum().backward()
    left = {name: one.grad for name, one in model.named_parameters(remove_duplicate=False)}
    return output, left | dict(model.named_buffers(remove_duplicate=False))


def unlike(name: str, placed: Any, call: Callable[..., Any] | None = None) -> list[str]:
    """Return the names of the outputs, gradients and buffers that differ from those of the model."""
    model, args = doubled(name)
    want, left = gradients(copy.deepcopy(model), args)
    output, found = gradients(placed, args, call)
    both = {"output": (output, want)} | {path: (found[path], left[path]) for path in left}
    return [path for path, (a, b) in both.items() if not (a is b is None or torch.equal(a, b))]
