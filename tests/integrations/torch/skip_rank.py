"""A rank of a pipeline of a U-Net, as a program: it runs the stage that torch's front end cuts, for one step.

Arguments: the folder with ``plan.json``, the number of the rank, and the name of a schedule's class.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch.distributed import pipelining

from tests.integrations.torch.models import made

MICROBATCHES = 4


def batch() -> tuple[Any, Any]:
    """The same samples in every process: as many microbatches, each of the shape that was captured."""
    _, (sample,) = made("unet")
    torch.manual_seed(1)
    whole = torch.randn(MICROBATCHES * len(sample), *sample.shape[1:])
    return whole, sample


def loss(output: Any, target: Any) -> Any:
    """A sum over samples, so that the microbatches add up."""
    return (output.sum((1, 2, 3)) - target).square().sum()


def run(folder: Path, rank: int, schedule: str) -> None:
    """Run one step of this rank's stage, and save its output or the gradients of its parameters."""
    torch.set_num_threads(1)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=len(plan["ranks"])
    )
    given, sample = batch()
    spec = dict.fromkeys(plan["split_points"], pipelining.SplitPoint.BEGINNING)
    pipe = pipelining.pipeline(made("unet")[0], (sample,), split_spec=spec)
    stage = pipe.build_stage(rank, torch.device("cpu"))
    kind = getattr(import_module("torch.distributed.pipelining.schedules"), schedule)
    trained = schedule != "_ScheduleForwardOnly"
    options = {"loss_fn": loss, "scale_grads": False} if trained else {}
    last = rank == len(plan["ranks"]) - 1
    target = {"target": torch.ones(len(given)), "losses": []} if last and trained else {}
    found = kind(stage, MICROBATCHES, **options).step(*([given] if rank == 0 else []), **target)
    named = pipe.get_stage_module(rank).named_parameters()
    made_here = (
        {name: tensor.grad for name, tensor in named} if trained else {"output": found} if last else {}
    )
    torch.save(made_here, folder / f"rank{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
