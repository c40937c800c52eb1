"""Pipelines of torch alone: its own stages and schedules in two processes, without the library."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
from time import perf_counter, thread_time
from typing import Any, NamedTuple

import torch
import torch.distributed as distributed
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
from torch.nn import functional

SCHEDULES = {"1f1b": Schedule1F1B, "gpipe": ScheduleGPipe}
RANKS = 2


class PlainRun(NamedTuple):
    """The median time of a batch, and the CPU time of its busiest rank, in ms."""

    batch: float
    busiest: float


def plain_run(
    halves: tuple[Any, Any], sample: Any, target: Any, schedule: str, microbatches: int, rounds: int
) -> PlainRun:
    """Return the times of a batch under a schedule; gradients are added up, and no optimizer runs."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes = [context.Pipe(duplex=False) for _ in range(RANKS)]
        job = halves, sample, target, schedule, microbatches, rounds
        ranks = [
            context.Process(target=_rank, args=(rank, f"file://{folder}/meeting", pipes[rank][1], job))
            for rank in range(RANKS)
        ]
        for rank in ranks:
            rank.start()
        found = [receiver.recv() for receiver, _ in pipes]
        for rank in ranks:
            rank.join()
    rounds_of = list(zip(*found, strict=True))
    batch = [max(one[1] for one in each) - min(one[0] for one in each) for each in rounds_of]
    busiest = [max(one[2] for one in each) for each in rounds_of]
    return PlainRun(1e3 * statistics.median(batch), 1e3 * statistics.median(busiest))


def _rank(rank: int, meeting: str, sender: Any, job: tuple[Any, ...]) -> None:
    halves, sample, target, name, microbatches, rounds = job
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=RANKS)
    stage = PipelineStage(halves[rank], rank, RANKS, torch.device("cpu"))
    schedule = SCHEDULES[name](stage, microbatches, loss_fn=functional.mse_loss)
    batch = (torch.cat([sample] * microbatches),) if rank == 0 else ()
    given = {"target": torch.cat([target] * microbatches)} if rank == RANKS - 1 else {}
    found = []
    for _ in range(rounds + 1):
        distributed.barrier()
        begin, cpu = perf_counter(), thread_time()
        schedule.step(*batch, **given)
        found.append((begin, perf_counter(), thread_time() - cpu))
    distributed.barrier()
    sender.send(found[1:])
    distributed.destroy_process_group()
