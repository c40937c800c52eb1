"""Two processes that send tensors to one another and back, and how long that takes."""

from __future__ import annotations

import multiprocessing
import signal
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import torch

from partitioner.base.errors import BackendUnavailable
from partitioner.base.interruption import Interruption
from partitioner.base.units import MS_PER_SECOND

WARM_UP = 3
LOOK = 0.05  # seconds between two looks at a request to stop


class Meeting(NamedTuple):
    """What both processes are told: how and where they meet, and what they send."""

    backend: str
    address: str
    sizes: tuple[int, ...]
    rounds: int


class Exchange:
    """Measures pairs of devices, each with two processes of its own.

    Parameters
    ----------
    backend
        ``"gloo"`` or ``"nccl"``.
    sizes, rounds
        The bytes of the tensors, and how many times each is sent there and back.
    time_limit
        Seconds that a pair may take.
    interruption
        Says whether to stop.
    """

    def __init__(
        self,
        backend: str,
        sizes: tuple[int, ...],
        rounds: int,
        time_limit: float,
        interruption: Interruption,
    ) -> None:
        self._backend, self._sizes, self._rounds = backend, sizes, rounds
        self._time_limit, self._interruption = time_limit, interruption

    def times(self, first: int, second: int) -> list[tuple[int, float]]:
        """Return each size with the ms of a transfer; nothing if the run is stopped before the end.

        Raises
        ------
        BackendUnavailable
            If there are too few CUDA devices, or the processes do not reach one another.
        """
        cuda = self._backend == "nccl"
        count = torch.cuda.device_count() if cuda else 0
        if cuda and max(first, second) >= count:
            rule = f"backend = 'nccl': needs a CUDA device for each device; torch finds {count}"
            raise BackendUnavailable(f"{rule}: use backend='gloo'")
        context: Any = multiprocessing.get_context("spawn" if cuda else _cheapest())
        with tempfile.TemporaryDirectory() as folder:
            meeting = Meeting(self._backend, (Path(folder) / "meeting").as_uri(), self._sizes, self._rounds)
            receiving, sending = context.Pipe(duplex=False)
            sides = [
                context.Process(target=_side, args=(rank, number, meeting, sending), daemon=True)
                for rank, number in enumerate((first, second))
            ]
            try:
                for side in sides:
                    side.start()
                sending.close()
                return self._answer(receiving)
            finally:
                _end(sides)
                receiving.close()

    def _answer(self, receiving: Connection) -> list[tuple[int, float]]:
        ends = time.perf_counter() + self._time_limit
        while not receiving.poll(LOOK):
            if self._interruption.asked:
                return []
            if time.perf_counter() > ends:
                raise BackendUnavailable(
                    f"backend = {self._backend!r}: two processes did not end in {self._time_limit:g} s"
                )
        try:
            answer = receiving.recv()
        except EOFError:
            answer = "they ended without an answer"
        if isinstance(answer, str):
            raise BackendUnavailable(f"backend = {self._backend!r}: two processes cannot exchange: {answer}")
        return list(zip(self._sizes, answer, strict=True))


def _cheapest() -> str:
    """Return the way to start a process that need not load torch again, where the system has it."""
    methods = multiprocessing.get_all_start_methods()
    return "fork" if "fork" in methods else methods[0]


def _end(sides: list[Any]) -> None:
    for side in sides:
        if side.pid is not None:
            side.terminate()
            side.join(1.0)
            if side.is_alive():
                side.kill()
                side.join()
            side.close()


def _side(rank: int, number: int, meeting: Meeting, sending: Connection) -> None:
    """Run one of the two processes; the first one answers with the times, or either with an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        torch.set_num_threads(1)
        cuda = meeting.backend == "nccl"
        device = torch.device("cuda", number) if cuda else torch.device("cpu")
        if cuda:
            torch.cuda.set_device(device)
        torch.distributed.init_process_group(
            meeting.backend, init_method=meeting.address, rank=rank, world_size=2
        )
        found = _one_way_times(rank, meeting, device)
        torch.distributed.barrier()
        if rank == 0:
            sending.send(found)
        torch.distributed.destroy_process_group()
    except Exception as error:  # whatever a backend raises is told to the caller, in one line
        with suppress(OSError):
            sending.send(f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")


def _one_way_times(rank: int, meeting: Meeting, device: Any) -> list[float]:
    """Return for each size the median time in ms of half the way there and back.

    Every round sends all sizes, so that what else runs on the machine for a while slows all of them alike.
    """
    tensors = [torch.zeros(size, dtype=torch.uint8, device=device) for size in meeting.sizes]
    rounds = [[_one_way(rank, tensor) for tensor in tensors] for _ in range(WARM_UP + meeting.rounds)]
    return [statistics.median(times) for times in zip(*rounds[WARM_UP:], strict=True)]


def _one_way(rank: int, tensor: Any) -> float:
    """Return half the time in ms that a tensor takes there and back."""
    steps: tuple[Callable[..., Any], ...] = (torch.distributed.send, torch.distributed.recv)
    started = time.perf_counter()
    for step in steps if rank == 0 else reversed(steps):
        step(tensor, 1 - rank)
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)
    return (time.perf_counter() - started) * MS_PER_SECOND / 2
