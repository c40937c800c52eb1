"""Models whose pipelines are measured, with the arguments of a call, the loss and its target.

Their forward passes take some 50 ms on a core of a server; what a pipeline adds to a pass is small then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))  # for the models of the tests

import torch
from torch import nn
from torch.nn import functional

from tests.integrations.torch.models import Block, Mixture, ResNet50, UNet

Case = tuple[Any, tuple[Any, ...], Callable[..., Any], Any]
WORDS = 1000


class Recurrent(nn.Module):  # type: ignore[misc]
    """Layers of GRU with residual connections, as those of GNMT."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.GRU(width, width, batch_first=True) for _ in range(layers))
        self.head = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Return the hidden states of the last layer, through a linear layer."""
        for layer in self.layers:
            x = x + layer(x)[0]
        return self.head(x)


def transformer() -> Case:
    """Six layers of width 384, 4 sequences of 64 words."""
    model = nn.Sequential(nn.Embedding(WORDS, 384), *(Block(384, 6) for _ in range(6)), nn.Linear(384, WORDS))
    return model, (torch.randint(0, WORDS, (4, 64)),), functional.mse_loss, torch.randn(4, 64, WORDS)


def resnet50() -> Case:
    """ResNet-50 on 2 images of 80 by 80."""
    return ResNet50(), (torch.randn(2, 3, 80, 80),), functional.mse_loss, torch.randn(2, 1000)


def unet() -> Case:
    """A U-Net with skip connections at two resolutions, on 2 images of 112 by 112."""
    return UNet(32), (torch.randn(2, 3, 112, 112),), functional.mse_loss, torch.randn(2, 32, 112, 112)


def experts() -> Case:
    """Four layers of attention, each before one of 4 experts, of width 384; 4 sequences of 64 words."""
    model = Mixture(4, 384, WORDS)
    return model, (torch.randint(0, WORDS, (4, 64)),), functional.mse_loss, torch.randn(4, 64, WORDS)


def recurrent() -> Case:
    """Six layers of GRU of width 384, 32 sequences of 12 vectors."""
    return Recurrent(384, 6), (torch.randn(32, 12, 384),), functional.mse_loss, torch.randn(32, 12, 384)


def convolutions() -> Case:
    """Twelve equal convolutions on 2 images of 80 by 80."""
    layers = [(nn.Conv2d(32, 32, 3, padding=1), nn.GroupNorm(4, 32), nn.SiLU()) for _ in range(12)]
    model = nn.Sequential(*(nn.Sequential(*one) for one in layers))
    return model, (torch.randn(2, 32, 80, 80),), functional.mse_loss, torch.randn(2, 32, 80, 80)


MODELS: dict[str, Callable[[], Case]] = {
    made.__name__: made for made in (transformer, resnet50, unet, experts, recurrent, convolutions)
}
