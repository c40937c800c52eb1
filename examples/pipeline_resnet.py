"""ResNet-50, planned for the ranks that torchrun starts, and run as an inference pipeline.

``torchrun --nproc-per-node 2 examples/pipeline_resnet.py`` compares the output with that of the whole model.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import nn

import partitioner as pt
from partitioner.integrations.torch import graph_of
from partitioner.integrations.torch.pipelines import process_group, run_pipeline, stages_of

MICROBATCHES = 4


class Bottleneck(nn.Module):
    """A block of ResNet-50."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(before, width, 1), nn.Conv2d(width, 4 * width, 1)
        self.middle = nn.Conv2d(width, width, 3, stride, 1)
        self.norm1, self.norm2, self.norm3 = (nn.BatchNorm2d(n) for n in (width, width, 4 * width))
        self.skip = nn.Conv2d(before, 4 * width, 1, stride) if before != 4 * width else nn.Identity()

    def forward(self, x: Any) -> Any:
        """Return the sum of the block and its skip connection."""
        found = torch.relu(self.norm2(self.middle(torch.relu(self.norm1(self.reduce(x))))))
        return torch.relu(self.norm3(self.expand(found)) + self.skip(x))


def made() -> nn.Module:
    """Return the model; all ranks make the same one."""
    torch.manual_seed(0)
    blocks: list[nn.Module] = []
    before = 64
    for stage, count in enumerate((3, 4, 6, 3)):
        for i in range(count):
            blocks.append(Bottleneck(before, 64 << stage, 2 if stage and not i else 1))
            before = 256 << stage
    stem = [nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000)).eval()


def main() -> None:
    """Plan the model, run this rank's part of it, and compare the output."""
    torch.set_num_threads(1)
    model = made()
    images = torch.randn(MICROBATCHES, 3, 64, 64)
    graph = graph_of(model, (images[:1],), device="CPU", dtype="float32", bandwidth=4e9)
    plan = pt.solve(graph, pt.Devices.accelerated(int(os.environ["WORLD_SIZE"]), cpus=0))
    stages = stages_of(model, (images[:1],), graph, plan)
    with process_group():
        output = run_pipeline(stages, (images,), microbatches=MICROBATCHES).output
    if output is not None:
        with torch.no_grad():
            expected = torch.cat([model(image) for image in images.split(1)])
        print(f"{len(stages.modules)} stages, equal to the whole model: {torch.equal(output, expected)}")


if __name__ == "__main__":
    main()
