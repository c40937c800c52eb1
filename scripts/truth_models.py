"""Models whose pipelines are measured, with the arguments of a call, the loss and its target."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # for a model of the tests

import torch
from torch import nn
from torch.nn import functional

from tests.integrations.torch.models import Block

Case = tuple[Any, tuple[Any, ...], Callable[..., Any], Any]


class Bottleneck(nn.Module):  # type: ignore[misc]
    """A block of ResNet-50."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(before, width, 1, bias=False), nn.Conv2d(width, 4 * width, 1)
        self.middle = nn.Conv2d(width, width, 3, stride, 1, bias=False)
        self.norm1, self.norm2, self.norm3 = (nn.BatchNorm2d(n) for n in (width, width, 4 * width))
        self.skip = nn.Conv2d(before, 4 * width, 1, stride) if before != 4 * width else nn.Identity()

    def forward(self, x: Any) -> Any:
        """Return the sum of the block and its skip connection."""
        found = torch.relu(self.norm2(self.middle(torch.relu(self.norm1(self.reduce(x))))))
        return torch.relu(self.norm3(self.expand(found)) + self.skip(x))


class Recurrent(nn.Module):  # type: ignore[misc]
    """Layers of LSTM with residual connections, as in GNMT."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.LSTM(width, width, batch_first=True) for _ in range(layers))

    def forward(self, x: Any) -> Any:
        """Return the hidden states of the last layer."""
        for layer in self.layers:
            x = x + layer(x)[0]
        return x


class Experts(nn.Module):  # type: ignore[misc]
    """A layer of experts, all of which see all tokens."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x: Any) -> Any:
        """Return the input and the weighted sum of the experts."""
        share = self.router(x).softmax(-1)
        return x + sum(torch.relu(each(x)) * share[..., i : i + 1] for i, each in enumerate(self.experts))


def transformer() -> Case:
    """Six layers of width 256, 4 sequences of 64 tokens."""
    model = nn.Sequential(nn.Embedding(1000, 256), *(Block(256, 4) for _ in range(6)), nn.Linear(256, 1000))
    return model, (torch.randint(0, 1000, (4, 64)),), functional.mse_loss, torch.randn(4, 64, 1000)


def resnet50(size: int = 64) -> Case:
    """ResNet-50 on 2 small images."""
    blocks, before = [], 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            blocks.append(Bottleneck(before, 64 << stage, 2 if stage and not i else 1))
            before = 256 << stage
    stem = [nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    model = nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
    return model, (torch.randn(2, 3, size, size),), functional.mse_loss, torch.randn(2, 1000)


def convolutions() -> Case:
    """Twelve equal convolutions."""
    layers = [(nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.SiLU()) for _ in range(12)]
    model = nn.Sequential(*(nn.Sequential(*one) for one in layers))
    return model, (torch.randn(2, 32, 48, 48),), functional.mse_loss, torch.randn(2, 32, 48, 48)


def lstm() -> Case:
    """Six layers of LSTM of width 256."""
    return Recurrent(256, 6), (torch.randn(8, 24, 256),), functional.mse_loss, torch.randn(8, 24, 256)


def experts() -> Case:
    """Six layers of four experts of width 384."""
    model = nn.Sequential(*(Experts(384, 4) for _ in range(6)))
    return model, (torch.randn(4, 64, 384),), functional.mse_loss, torch.randn(4, 64, 384)


MODELS: dict[str, Callable[[], Case]] = {
    made.__name__: made for made in (transformer, resnet50, convolutions, lstm, experts)
}
