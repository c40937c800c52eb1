"""Models that are sequences of layers, so that torch's own stages of them are slices."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))  # for the models of the tests

import torch
from torch import nn
from torch.nn import functional

from tests.integrations.torch.models import Block, Bottleneck

WORDS = 4000


class Case(NamedTuple):
    """A model, the input and the target of a microbatch, and the two layers before which it is cut."""

    model: Any
    sample: Any
    target: Any
    cuts: tuple[int, int]


class Encoder(nn.Module):  # type: ignore[misc]
    """A layer of BERT: attention to all positions, each part normalised after its shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        """Return the states of all positions, of shape (sequences, positions, width)."""
        x = self.norm1(x + self.attention(x, x, x, need_weights=False)[0])
        return self.norm2(x + self.down(functional.gelu(self.up(x))))


class Mean(nn.Module):  # type: ignore[misc]
    """The mean over the positions of an image."""

    def forward(self, x: Any) -> Any:
        """Return a vector for each image."""
        return x.mean((2, 3))


def mlp() -> Case:
    """Ten layers of width 1,024 with ReLU, 64 vectors."""
    layers = [nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(10)]
    return Case(nn.Sequential(*layers), torch.randn(64, 1024), torch.randn(64, 1024), (5, 7))


def gpt() -> Case:
    """Six blocks of width 256 between embedding and head, 4 sequences of 64 words."""
    layers = [nn.Embedding(WORDS, 256), *(Block(256, 4) for _ in range(6)), nn.Linear(256, WORDS)]
    return Case(nn.Sequential(*layers), _words(), torch.randn(4, 64, WORDS), (4, 5))


def bert() -> Case:
    """Eight encoder layers of width 256 behind an embedding, 4 sequences of 64 words."""
    layers = [nn.Embedding(WORDS, 256), *(Encoder(256, 4) for _ in range(8)), nn.Linear(256, 256)]
    return Case(nn.Sequential(*layers), _words(), torch.randn(4, 64, 256), (3, 5))


def resnet() -> Case:
    """A residual network of ten bottlenecks, 2 images of 64 by 64."""
    stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
    sizes = [(64, 1), (64, 1), (64, 1), (128, 2), (128, 1), (128, 1), (256, 2), (256, 1), (256, 1), (256, 1)]
    before = [64, *(4 * width for width, _ in sizes[:-1])]
    layers = [Bottleneck(n, *size) for n, size in zip(before, sizes, strict=True)]
    head = nn.Sequential(Mean(), nn.Linear(1024, 100))
    model = nn.Sequential(stem, *layers, head)
    return Case(model, torch.randn(2, 3, 64, 64), torch.randn(2, 100), (5, 7))


def _words() -> Any:
    return torch.randint(0, WORDS, (4, 64))


SEQUENCES: dict[str, Callable[[], Case]] = {made.__name__: made for made in (mlp, gpt, bert, resnet)}
