"""Processes for pipelines: a process group, and ranks that are forked on one machine."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic
from typing import Any, NamedTuple

from partitioner.base.errors import PartitionerError
from partitioner.integrations.torch.installed import require_torch

ENVIRONMENT = "env://"  # what torchrun sets
LEAVING = 0.5  # seconds in which a process that is gone can be seen to be


@contextmanager
def process_group(
    rank: int = -1, world: int = -1, rendezvous: str = ENVIRONMENT, backend: str = "gloo"
) -> Iterator[None]:
    """Join torch's process group, and leave it at the end.

    Parameters
    ----------
    rank, world
        The number of this process, and of all; under ``torchrun`` they are in the environment.
    rendezvous
        Where the processes meet: torch's ``init_method``.
    backend
        What moves tensors: ``"gloo"`` for CPUs, ``"nccl"`` for GPUs.
    """
    require_torch()
    import torch.distributed as distributed

    distributed.init_process_group(backend, init_method=rendezvous, rank=rank, world_size=world)
    try:
        yield
    finally:
        distributed.destroy_process_group()


def in_processes(work: Callable[[int], Any], world: int, *, seconds: float = 600.0) -> list[Any]:
    """Return what a function returns in each of several processes, which form a process group of gloo.

    The processes are forks of this one with one thread each, so that the function may use all that is in
    memory here. They end before the call does.

    Parameters
    ----------
    work
        Takes the number of the process; what it returns must be possible to pickle.
    world
        The number of processes.
    seconds
        The longest that they may take.

    Raises
    ------
    PartitionerError
        If a process fails, with what it says, or the time is over.
    """
    require_torch()
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pairs = [context.Pipe(duplex=False) for _ in range(world)]
        meeting = f"file://{folder}/meeting"
        running = [
            context.Process(target=_rank, args=(work, rank, world, meeting, sender))
            for rank, (_, sender) in enumerate(pairs)
        ]
        try:
            for process in running:
                process.start()
            for _, sender in pairs:
                sender.close()
            return _answers([receiver for receiver, _ in pairs], running, monotonic() + seconds, seconds)
        finally:
            for process in running:
                if process.pid is not None:
                    process.join(0.5)
                    process.kill()
                    process.join()


def _answers(
    receivers: list[Connection], running: Sequence[BaseProcess], end: float, seconds: float
) -> list[Any]:
    found: dict[int, Any] = {}
    while len(found) < len(receivers):
        waiting = [one for rank, one in enumerate(receivers) if rank not in found]
        ready = wait(waiting, max(0.0, end - monotonic()))
        if not ready:
            raise PartitionerError(f"processes of the pipeline: not finished after {seconds:g} s")
        replies = {rank: _reply(one) for rank, one in enumerate(receivers) if one in ready}
        failed = [(reply.when, rank, reply.content) for rank, reply in replies.items() if reply.failed]
        if failed:
            _require_alive(running)
            _, rank, content = min(failed)  # the others failed because this one was gone
            raise PartitionerError(f"rank {rank} of the pipeline {content}")
        found |= {rank: reply.content for rank, reply in replies.items()}
    return [found[rank] for rank in range(len(receivers))]


def _require_alive(running: Sequence[BaseProcess]) -> None:
    """Raise if a process was killed, which is why the others failed."""
    for rank, process in enumerate(running):
        process.join(LEAVING)  # its connections are closed a moment before its end can be read
        if process.exitcode is not None and process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            rule = "was killed by" if name != "SIGKILL" else "was killed, as where memory is short, by"
            raise PartitionerError(f"rank {rank} of the pipeline {rule} {name}")


class Reply(NamedTuple):
    """What a rank returns, or how it failed and when, in seconds of a clock that all processes share."""

    content: Any
    failed: bool = False
    when: float = 0.0


def _reply(receiver: Connection) -> Reply:
    try:
        return Reply(*pickle.loads(receiver.recv_bytes()))
    except EOFError:
        return Reply("ended without an answer", True, math.inf)


def _rank(work: Callable[[int], Any], rank: int, world: int, rendezvous: str, sender: Connection) -> None:
    """Run a rank, and send what it returns, or why it failed, before it leaves the process group."""
    import torch

    torch.set_num_threads(1)
    try:
        with process_group(rank, world, rendezvous):
            torch.distributed.barrier()  # a rank that left now would break the others' connections
            sender.send_bytes(_answer(work, rank))
    except BaseException:
        sender.send_bytes(_failure())
    sender.close()


def _answer(work: Callable[[int], Any], rank: int) -> bytes:
    try:
        return pickle.dumps((work(rank),))
    except BaseException:
        return _failure()


def _failure() -> bytes:
    return pickle.dumps((f"failed:\n{traceback.format_exc()}", True, monotonic()))
