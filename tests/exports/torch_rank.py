"""A rank of a torch pipeline, as a program: it runs the stages that an exported plan gives it, for one step.

Arguments: the folder with ``plan.json`` (what was exported) and ``schedule.csv``, and the number of the rank.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

SIZE, SAMPLES = 4, 2  # of a tensor, and of a microbatch


def modules_by_name(torch: Any, names: list[str]) -> dict[str, Any]:
    """The same modules in every process."""
    torch.manual_seed(0)
    return {name: torch.nn.Sequential(torch.nn.Linear(SIZE, SIZE), torch.nn.Tanh()) for name in names}


def batch(torch: Any, microbatches: int) -> tuple[Any, Any]:
    """The same inputs and targets in every process."""
    torch.manual_seed(1)
    shape = (microbatches * SAMPLES, SIZE)
    return torch.randn(shape), torch.randn(shape)


def run(folder: Path, rank: int) -> None:
    """Run one step of this rank's stages, and save the gradients of their parameters."""
    torch: Any = import_module("torch")
    stage_kind = import_module("torch.distributed.pipelining").PipelineStage
    runtime = import_module("torch.distributed.pipelining.schedules")._PipelineScheduleRuntime
    torch.set_num_threads(1)
    plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
    ranks, stages, count = plan["stage_to_rank"], plan["stages"], plan["microbatches"]
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder / 'meeting'}", rank=rank, world_size=len(plan["ranks"])
    )
    modules = modules_by_name(torch, [name for stage in stages for name in stage])
    own = [number for number, home in enumerate(ranks) if home == rank]
    parts = {number: torch.nn.Sequential(*(modules[name] for name in stages[number])) for number in own}
    pipeline = [stage_kind(parts[k], k, len(stages), torch.device("cpu")) for k in own]
    schedule: Any = runtime(pipeline, count, loss_fn=torch.nn.functional.mse_loss)
    schedule._load_csv(str(folder / "schedule.csv"), format="compute_only")
    given, target = batch(torch, count)
    last = len(stages) - 1 in own
    schedule.step(*([given] if 0 in own else []), **({"target": target, "losses": []} if last else {}))
    named = ((name, modules[name]) for number in own for name in stages[number])
    torch.save({name: [p.grad for p in each.parameters()] for name, each in named}, folder / f"rank{rank}.pt")
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]))
