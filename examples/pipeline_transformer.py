"""A transformer, planned for the ranks that torchrun starts, and trained as a pipeline.

``torchrun --nproc-per-node 2 examples/pipeline_transformer.py`` plans it for two devices by the estimated
times of its operators, cuts it where the plan says, and trains it for a few steps under 1F1B.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

import partitioner as pt
from partitioner.integrations.torch import graph_of
from partitioner.integrations.torch.pipelines import PipelineRank, process_group, stages_of

SAMPLES, LENGTH, WIDTH, WORDS, MICROBATCHES, STEPS = 2, 32, 64, 200, 8, 5


def made() -> nn.Module:
    """Return the model; all ranks make the same one."""
    torch.manual_seed(0)
    layers = [
        nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.0, batch_first=True) for _ in range(6)
    ]
    return nn.Sequential(nn.Embedding(WORDS, WIDTH), *layers, nn.Linear(WIDTH, WORDS))


def loss(found: Any, words: Any) -> Any:
    """Return how badly the words are predicted."""
    return nn.functional.cross_entropy(found.flatten(0, 1), words.flatten())


def main() -> None:
    """Plan the model, and train this rank's part of it."""
    torch.set_num_threads(1)
    model = made()
    sample = torch.randint(0, WORDS, (SAMPLES, LENGTH))
    graph = graph_of(
        model,
        (sample,),
        device="CPU",
        dtype="float32",
        bandwidth=4e9,
        training=True,
        loss=loss,
        targets=(sample,),
    )
    plan = pt.solve(graph, pt.Devices.accelerated(int(os.environ["WORLD_SIZE"]), cpus=0))
    stages = stages_of(model, (sample,), graph, plan)
    with process_group():
        rank = PipelineRank(stages, MICROBATCHES, "1f1b", loss)
        optimizer = torch.optim.Adam(rank.parameters(), 1e-3)
        for step in range(STEPS):
            torch.manual_seed(step)
            words = torch.randint(0, WORDS, (MICROBATCHES * SAMPLES, LENGTH))
            optimizer.zero_grad()
            found = rank.step((words,), words)
            optimizer.step()
            if found.losses:
                print(f"step {step}: loss {float(torch.stack(found.losses).mean()):.4f}")


if __name__ == "__main__":
    main()
