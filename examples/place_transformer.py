"""Capture a small transformer, plan its training on two devices, and run one step of it there.

Without CUDA both devices are simulated on the CPU: ``python examples/place_transformer.py`` takes seconds.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

import partitioner as pt
from partitioner.integrations.torch import graph_of, place

VOCABULARY, WIDTH, LENGTH = 100, 32, 16


class Transformer(nn.Module):
    """Two layers of torch's encoder between an embedding and a head that share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the scores of the next token."""
        hidden = self.tokens(x)
        for layer in self.layers:
            hidden = layer(hidden)
        return self.head(hidden)


def loss_of(scores: torch.Tensor, wanted: torch.Tensor) -> torch.Tensor:
    """Return the mean cross entropy over all tokens."""
    return functional.cross_entropy(scores.flatten(0, 1), wanted.flatten())


def main() -> None:
    """Print the plan, what is copied, and how far loss and gradients are from those of the model."""
    torch.manual_seed(0)
    model = Transformer().double()
    args, wanted = (torch.randint(0, VOCABULARY, (4, LENGTH)),), torch.randint(0, VOCABULARY, (4, LENGTH))
    options: dict[str, Any] = {"loss": loss_of, "targets": (wanted,)}
    graph = graph_of(model, args, device="H100", bandwidth=1e13, training=True, **options)
    plan = pt.solve(graph, pt.Devices.accelerated(2))
    print(plan.summary())

    placed = place(model, args, graph, plan, **options)
    loss = placed(*args, wanted)
    loss.backward()
    for copy in placed.copies:
        print(f"{copy.tensor} ({copy.kind}): {copy.nbytes} bytes from {copy.source} to {copy.target}")

    expected = loss_of(model(*args), wanted)
    expected.backward()
    apart = [
        (one.grad - placed.get_parameter(path).grad.cpu()).abs().max()
        for path, one in model.named_parameters()
    ]
    print(f"loss {loss.item():.6f}, the model's {expected.item():.6f}")
    print(f"largest difference of a gradient: {max(apart).item():g}")
    torch.optim.AdamW(placed.parameters(), 1e-3).step()
    model.load_state_dict(placed.state_dict())  # the names are the model's


if __name__ == "__main__":
    main()
