"""The executor of a sweep on a cluster of Dask, or on one that is started on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, PartitionerError

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
