"""Small models of four kinds, and blocks of a large one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):  # type: ignore[misc]
    """A block of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(found.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):  # type: ignore[misc]
    """A transformer whose embedding and head share their weights."""

    def __init__(self, blocks: int = 2, width: int = 32, vocabulary: int = 50) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(16, width)
        self.layers = nn.ModuleList(Block(width, 4) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Any) -> Any:
        hidden = self.tokens(x) + self.positions(torch.arange(x.shape[1], device=x.device))
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(self.norm(hidden))


class Residual(nn.Module):  # type: ignore[misc]
    """Two convolutions with batch normalisation, a skip connection and one activation for both."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a, self.b = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm_a, self.norm_b = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Any) -> Any:
        return self.relu(self.norm_b(self.b(self.relu(self.norm_a(self.a(x))))) + x)


class Cnn(nn.Module):  # type: ignore[misc]
    """Residual blocks with batch normalisation."""

    def __init__(self, blocks: int = 2, channels: int = 8) -> None:
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, channels, 3, padding=1), nn.MaxPool2d(2)
        self.blocks = nn.Sequential(*(Residual(channels) for _ in range(blocks)))
        self.head = nn.Linear(channels, 10)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.pool(self.stem(x))).mean((2, 3)))


class UNet(nn.Module):  # type: ignore[misc]
    """An encoder and a decoder with a skip connection at each resolution."""

    def __init__(self, channels: int = 4) -> None:
        super().__init__()
        self.down1, self.down2 = _convolution(3, channels), _convolution(channels, 2 * channels)
        self.middle = _convolution(2 * channels, 2 * channels)
        self.up2, self.up1 = _convolution(4 * channels, channels), _convolution(2 * channels, channels)
        self.pool = nn.MaxPool2d(2)
        self.widen2 = nn.ConvTranspose2d(2 * channels, 2 * channels, 2, 2)
        self.widen1 = nn.ConvTranspose2d(channels, channels, 2, 2)

    def forward(self, x: Any) -> Any:
        first = self.down1(x)
        second = self.down2(self.pool(first))
        found = self.widen2(self.middle(self.pool(second)))
        found = self.widen1(self.up2(torch.cat([found, second], 1)))
        return self.up1(torch.cat([found, first], 1))


def _convolution(before: int, after: int) -> Any:
    return nn.Sequential(nn.Conv2d(before, after, 3, padding=1), nn.GroupNorm(2, after), nn.SiLU())


class Experts(nn.Module):  # type: ignore[misc]
    """A mixture of experts in which all experts see all tokens."""

    def __init__(self, width: int = 16, experts: int = 3) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))
        self.last = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        share = self.router(x).softmax(-1)
        found = sum(expert(x) * share[..., i : i + 1] for i, expert in enumerate(self.experts))
        return self.last(torch.relu(found) + x)


class Routed(nn.Module):  # type: ignore[misc]
    """A block in which a token counts two of the experts, though all see it."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.norm, self.router = nn.LayerNorm(width), nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x: Any) -> Any:
        inner = self.norm(x)
        score, chosen = self.router(inner).softmax(-1).topk(2)
        share = torch.zeros(*x.shape[:-1], len(self.experts)).scatter(-1, chosen, score)
        for i, expert in enumerate(self.experts):
            x = x + expert(inner).relu() * share[..., i : i + 1]
        return x


class Mixture(nn.Module):  # type: ignore[misc]
    """A transformer of blocks with attention, and blocks that route tokens to experts."""

    def __init__(self, blocks: int = 3, width: int = 16, vocabulary: int = 50) -> None:
        super().__init__()
        self.tokens, self.head = nn.Embedding(vocabulary, width), nn.Linear(width, vocabulary)
        self.layers = nn.ModuleList(
            layer for _ in range(blocks) for layer in (Block(width, 4), Routed(width, 4))
        )

    def forward(self, x: Any) -> Any:
        hidden = self.tokens(x)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


class Bottleneck(nn.Module):  # type: ignore[misc]
    """Three convolutions with batch normalisation and a shortcut, which is projected where shapes differ."""

    def __init__(self, before: int, inner: int, stride: int) -> None:
        super().__init__()
        self.a, self.c = (nn.Conv2d(*sizes, 1, bias=False) for sizes in ((before, inner), (inner, 4 * inner)))
        self.b = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.norm_a, self.norm_b, self.norm_c = (nn.BatchNorm2d(n) for n in (inner, inner, 4 * inner))
        self.shortcut, self.relu = nn.Identity(), nn.ReLU(inplace=True)
        if stride > 1 or before != 4 * inner:
            projection = nn.Conv2d(before, 4 * inner, 1, stride, bias=False)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(4 * inner))

    def forward(self, x: Any) -> Any:
        found = self.relu(self.norm_b(self.b(self.relu(self.norm_a(self.a(x))))))
        return self.relu(self.norm_c(self.c(found)) + self.shortcut(x))


class ResNet50(nn.Module):  # type: ignore[misc]
    """The residual network of 50 layers and 25,557,032 parameters (He et al., 2015)."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU())
        self.pool, self.head = nn.MaxPool2d(3, 2, 1), nn.Linear(2048, 1000)
        sizes = [(width, i) for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)) for i in range(count)]
        before = [64, *(4 * width for width, _ in sizes[:-1])]
        self.layers = nn.Sequential(
            *(
                Bottleneck(n, width, 2 if i == 0 and width > 64 else 1)
                for n, (width, i) in zip(before, sizes, strict=True)
            )
        )

    def forward(self, x: Any) -> Any:
        return self.head(self.layers(self.pool(self.stem(x))).mean((2, 3)))


class Odd(nn.Module):  # type: ignore[misc]
    """A model with an operator that torch's counter does not know, and a parameter without use."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent, self.unused = nn.LSTM(4, 4), nn.Linear(2, 2, bias=False)

    def forward(self, x: Any) -> Any:
        return self.recurrent(x)[0]


class Chosen(nn.Module):  # type: ignore[misc]
    """A model that computes only with what is above zero."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        chosen = (x.sum(-1) > 0).nonzero().squeeze(-1)
        return x.index_add(0, chosen, self.inner(x[chosen]))


class Grouped(nn.Module):  # type: ignore[misc]
    """Experts whose products are one operation: each group of rows with a matrix of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 16, 32, dtype=torch.bfloat16))

    def forward(self, x: Any, ends: Any) -> Any:
        return functional.grouped_mm(x, self.weight, offs=ends)


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "gpt": (Gpt, lambda: torch.randint(0, 50, (2, 16))),
    "cnn": (Cnn, lambda: torch.randn(2, 3, 16, 16)),
    "unet": (UNet, lambda: torch.randn(2, 3, 16, 16)),
    "experts": (Experts, lambda: torch.randn(2, 5, 16)),
}
LARGER: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "mixture": (Mixture, lambda: torch.randint(0, 50, (2, 8))),
    "resnet50": (ResNet50, lambda: torch.randn(2, 3, 32, 32)),
}


def made(name: str) -> tuple[Any, tuple[Any, ...]]:
    """Return a model and the arguments of a call."""
    model, sample = (MODELS | LARGER)[name]
    torch.manual_seed(0)
    return model(), (sample(),)
