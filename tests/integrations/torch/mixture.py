"""A mixture of experts as Mixtral's, of which every expert gets the same number of tokens."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Routed(nn.Module):  # type: ignore[misc]
    """Feed-forward layers with a gate, some of which each token runs."""

    def __init__(self, width: int, inner: int, experts: int, top: int) -> None:
        super().__init__()
        self.experts, self.top = experts, top
        self.gate = nn.Linear(width, experts, bias=False)
        self.gate_proj, self.up_proj = (nn.Parameter(torch.zeros(experts, width, inner)) for _ in range(2))
        self.down_proj = nn.Parameter(torch.zeros(experts, inner, width))

    def forward(self, x: Any) -> Any:
        flat = x.flatten(0, 1)
        share, chosen = self.gate(flat).softmax(-1).topk(self.top)
        order = chosen.flatten().argsort()
        token = order // self.top
        rows = flat[token].view(self.experts, -1, flat.shape[-1])
        inner = functional.silu(rows @ self.gate_proj) * (rows @ self.up_proj)
        found = (inner @ self.down_proj).flatten(0, 1) * share.flatten()[order, None]
        return torch.zeros_like(flat).index_add(0, token, found).view_as(x)
