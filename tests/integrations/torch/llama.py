"""A decoder as Llama's, written anew for tests without the package that holds Llama."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):  # type: ignore[misc]
    """Attention whose keys and values are shared by groups of heads, with rotary positions."""

    def __init__(self, width: int, heads: int, groups: int) -> None:
        super().__init__()
        self.size, self.groups = width // heads, groups
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj, self.v_proj = (nn.Linear(width, groups * self.size, bias=False) for _ in range(2))
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Any, cosine: Any, sine: Any) -> Any:
        batch, length, width = x.shape
        query, key, value = (
            part(x).view(batch, length, -1, self.size).transpose(1, 2)
            for part in (self.q_proj, self.k_proj, self.v_proj)
        )
        query, key = (part * cosine + turned(part) * sine for part in (query, key))
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        return self.o_proj(found.transpose(1, 2).reshape(batch, length, width))


def turned(x: Any) -> Any:
    """Return each pair of numbers, halves of the last dimension apart, turned by a right angle."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Gated(nn.Module):  # type: ignore[misc]
    """A feed-forward layer with a gate."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Any) -> Any:
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderBlock(nn.Module):  # type: ignore[misc]
    """Attention and a feed-forward layer."""

    def __init__(self, width: int, heads: int, groups: int, inner: int) -> None:
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.RMSNorm(width), nn.RMSNorm(width)
        self.self_attn, self.mlp = Attention(width, heads, groups), Gated(width, inner)

    def forward(self, x: Any, cosine: Any, sine: Any) -> Any:
        x = x + self.self_attn(self.input_layernorm(x), cosine, sine)
        return x + self.mlp(self.post_attention_layernorm(x))


class Backbone(nn.Module):  # type: ignore[misc]
    """Embedding, blocks and last norm."""

    def __init__(self, width: int, heads: int, groups: int, inner: int, blocks: int, vocabulary: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(DecoderBlock(width, heads, groups, inner) for _ in range(blocks))
        self.norm, self.size = nn.RMSNorm(width), width // heads

    def forward(self, tokens: Any) -> Any:
        x = self.embed_tokens(tokens)
        rates = 1e4 ** -(torch.arange(0, self.size, 2, device=x.device) / self.size)
        angles = torch.outer(torch.arange(tokens.shape[1], device=x.device), rates).repeat(1, 2)
        cosine, sine = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cosine, sine)
        return self.norm(x)


class Llama(nn.Module):  # type: ignore[misc]
    """A decoder with a head; by default of the sizes of Llama 2 70B."""

    def __init__(
        self,
        width: int = 8192,
        heads: int = 64,
        groups: int = 8,
        inner: int = 28672,
        blocks: int = 80,
        vocabulary: int = 32000,
    ) -> None:
        super().__init__()
        self.model = Backbone(width, heads, groups, inner, blocks, vocabulary)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens: Any) -> Any:
        return self.lm_head(self.model(tokens))
