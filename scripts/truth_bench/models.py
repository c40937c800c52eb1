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
WORDS = 6000


class Recurrence(nn.Module):  # type: ignore[misc]
    """A layer of gated recurrent units, step by step."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.given, self.kept = nn.Linear(width, 3 * width), nn.Linear(width, 3 * width)

    def forward(self, x: Any) -> Any:
        """Return the states of all steps of sequences of shape (sequences, steps, width)."""
        state, found = torch.zeros_like(x[:, 0]), []
        for given in self.given(x).unbind(1):
            reset, update, new = given.chunk(3, -1)
            kept_reset, kept_update, kept_new = self.kept(state).chunk(3, -1)
            share = torch.sigmoid(update + kept_update)
            candidate = torch.tanh(new + torch.sigmoid(reset + kept_reset) * kept_new)
            state = candidate + share * (state - candidate)
            found.append(state)
        return torch.stack(found, 1)


class Recurrent(nn.Module):  # type: ignore[misc]
    """Recurrent layers with residual connections, as those of GNMT."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Recurrence(width) for _ in range(layers))
        self.head = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        """Return the states of the last layer, through a linear layer."""
        for layer in self.layers:
            x = x + layer(x)
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
    """Six recurrent layers of width 384, 64 sequences of 8 vectors."""
    return Recurrent(384, 6), (torch.randn(64, 8, 384),), functional.mse_loss, torch.randn(64, 8, 384)


MODELS: dict[str, Callable[[], Case]] = {
    made.__name__: made for made in (transformer, resnet50, unet, experts, recurrent)
}
