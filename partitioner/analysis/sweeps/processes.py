"""The executor of a sweep without a cluster: processes of which each runs one task at a time."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, PartitionerError

T = TypeVar("T")
UNGUARDED = (
    "the processes of the sweep end at once: a program that calls sweep must do so below "
    "'if __name__ == \"__main__\":', since they import it"
)


class OneTaskProcesses(ThreadPoolExecutor):
    """An executor with a pool of one process for each of its threads.

    If a process is lost, only the task that ran in it is, and the next task of that thread gets a new pool.
    The processes are started with ``spawn``. They end when :meth:`shutdown` cancels the futures, and also
    when the process that has started them is killed.

    Parameters
    ----------
    processes
        How many tasks run at the same time.
    """

    def __init__(self, processes: int) -> None:
        super().__init__(processes, "partitioner-sweep", _leave_ctrl_c_to_others)
        self._context = get_context("spawn")
        self._closed, self._held = self._context.Pipe(duplex=False)
        self._of_thread = threading.local()
        self._pools: list[ProcessPoolExecutor] = []

    def start(self) -> None:
        """Start the processes, and wait until they run.

        Raises
        ------
        PartitionerError
            If they end at once, as they do if they run the caller's program again.
        """
        started = [self.submit(os.getpid) for _ in range(self._max_workers)]
        try:
            for future in started:
                future.result()
        except BrokenProcessPool as error:
            raise PartitionerError(UNGUARDED) from error

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Run a call in the next process that is free."""
        return super().submit(self._in_process, fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes; with `cancel_futures` also those that run a task."""
        if cancel_futures:
            self._held.close()
        super().shutdown(wait, cancel_futures=cancel_futures)
        for pool in self._pools:
            pool.shutdown(wait)
        self._held.close()

    def _in_process(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        pool = getattr(self._of_thread, "pool", None)
        if pool is None:
            pool = ProcessPoolExecutor(1, self._context, _end_with_parent, (self._closed,))
            self._of_thread.pool = pool
            self._pools.append(pool)
        try:
            result: T = pool.submit(fn, *args, **kwargs).result()
        except BrokenProcessPool:
            self._of_thread.pool = None
            raise
        return result


def _leave_ctrl_c_to_others() -> None:
    """Begin a thread that starts processes: they get Ctrl-C as well, but not while they are imported.

    The tracker of resources is started before, since its start lets Ctrl-C through to the thread again.
    """
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _end_with_parent(closed: Connection) -> None:
    """Begin a worker process: it leaves Ctrl-C to its parent, and ends once the parent's pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(closed,), daemon=True).start()


def _wait_for_end(closed: Connection) -> None:
    closed.poll(None)  # nothing is ever sent, so this returns at the end of the pipe
    os._exit(1)


# The executor of a sweep on a cluster of Dask, or on one that is started on this machine.

LOCAL = "local"
NO_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"  # in workers; the sweep ends them


@contextmanager
def dask_executor(address: str, processes: int) -> Iterator[Executor]:
    """Yield an executor of the cluster at an address, such as ``"tcp://10.0.0.1:8786"``.

    Parameters
    ----------
    address
        The address of Dask's scheduler, or ``"local"`` for a cluster of processes on this machine, which
        ends with the ``with`` block.
    processes
        The number of processes of a local cluster, each with one thread.

    Raises
    ------
    BackendUnavailable
        If Dask's package ``distributed`` is not installed.
    PartitionerError
        If no scheduler answers at the address.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise BackendUnavailable(f"clusters need Dask: {remedy('cluster')}") from error
    local = {
        "n_workers": processes,
        "threads_per_worker": 1,
        "dashboard_address": "127.0.0.1:0",
        "silence_logs": "CRITICAL",
        "preload": [NO_CTRL_C],
        "scheduler_kwargs": {"allowed_failures": 0},  # the sweep itself runs a task again
    }
    try:
        client = Client(**local) if address == LOCAL else Client(address)
    except (OSError, ValueError) as error:  # a time-out is an OSError, too
        raise PartitionerError(f"Dask at {address}: {error}") from error
    with client:
        yield client.get_executor(pure=False)
