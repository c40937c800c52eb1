"""The public function `sweep`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from partitioner.analysis.sweeps.asked import AnyWorkload, asked_for
from partitioner.analysis.sweeps.drive import Drive
from partitioner.analysis.sweeps.journal import Journal
from partitioner.analysis.sweeps.pool import DevicePool
from partitioner.analysis.sweeps.processes import OneTaskProcesses
from partitioner.analysis.sweeps.result import SweepResult
from partitioner.analysis.sweeps.save import JSON_LINES, suffix_of
from partitioner.analysis.sweeps.state import SweepProgress, SweepState, made_folder
from partitioner.base.argument_types import require_callable
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import check_writable
from partitioner.base.interruption import Interruption, StopEvent
from partitioner.planning.option_rules import SWITCH
from partitioner.planning.options import check_values, cores_for
from partitioner.workload.devices import Devices

AnyPath = str | os.PathLike[str]


def sweep(
    workloads: AnyWorkload | Sequence[AnyWorkload],
    pools: Sequence[DevicePool | Devices] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    results: AnyPath | None = None,
    plans: AnyPath | None = None,
    executor: Executor | None = None,
    processes: int | None = None,
    warm_up: bool = True,
    retry_failed: bool = False,
    on_progress: Callable[[SweepProgress], None] | None = None,
    stop: StopEvent | None = None,
    **format_options: Any,
) -> SweepResult:
    """Solve the product of workloads, pools of devices and options, each task on one core.

    Ctrl-C and `stop` end the sweep with the rows so far. The same call with the same `results` then goes on
    where it ended; so it does after a crash.

    Parameters
    ----------
    workloads
        Workloads or files of them, a folder of such files, or a file in TOML that describes the whole
        product (``docs/sweeps.md``).
    pools
        The pools, each with :class:`partitioner.DevicePool` or :class:`partitioner.Devices`; None: those of
        the file in TOML, else the devices of each workload.
    options
        For options of :func:`partitioner.solve` a value, or a list of values that are taken in turn, such as
        ``{"objective": ["throughput", "latency"], "time_limit": 60}``.
    results
        The file of results, which is continued if it exists: ``.jsonl`` (JSON lines), to which a line is
        added when a task has ended; or ``.csv`` or ``.parquet``, which is written at the end, with the lines
        in a file of the same name and ``.jsonl``. None: no file.
    plans
        The folder for the plans, a file for each row; None: they are not kept.
    executor
        Any ``concurrent.futures.Executor`` whose workers can import this package, such as
        ``Client(...).get_executor()`` of Dask; it is not shut down. None: processes on this machine.
    processes
        The number of these processes; None: one for each core.
    warm_up
        Whether all kernels are compiled before the first task on each machine, see
        :func:`partitioner.warm_up`.
    retry_failed
        Whether tasks that failed before are run again.
    on_progress
        Called several times a second with a :class:`SweepProgress`.
    stop
        A ``threading.Event``, or any object with a method ``is_set``, that ends the sweep once it is set.
        Tasks that run in the caller's executor then run to their end, and what they find is dropped.
    **format_options
        What the format of the files takes in addition, such as ``bandwidth``, see :func:`partitioner.load`.

    Returns
    -------
    SweepResult
        The rows in the order of the tasks: for each workload all pools, for each pool all sets of options. A
        task that fails has a row with its reason. A task that runs out of memory or loses its worker is run
        once more, at the end.

    Raises
    ------
    WorkloadError, OptionError
        If a file, a pool or an option breaks a rule; no task has run then.
    BackendUnavailable
        If `results` is a Parquet file, and pyarrow is not installed.
    PartitionerError
        If a file cannot be written, or the executor takes no more tasks.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> from partitioner import DevicePool, Devices, Graph, Workload
    >>> graph = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
    >>> pools = [DevicePool(accelerators=n) for n in (1, 2)]
    >>> with ThreadPoolExecutor(1) as executor:
    ...     workload = Workload(graph, Devices.accelerated(1), "three nodes")
    ...     found = sweep(workload, pools, executor=executor, warm_up=False)
    >>> [(row.pool, row.value) for row in found.rows]
    [('1 accelerators', 6.0), ('2 accelerators', 3.5)]
    """
    require_callable(on_progress=on_progress)
    SWITCH.check("warm_up", warm_up)
    SWITCH.check("retry_failed", retry_failed)
    check_values(workers=processes)
    interruption = Interruption(stop)
    if executor is not None and (not isinstance(executor, Executor) or processes is not None):
        words = "must be a concurrent.futures.Executor, or None; processes are for None only"
        raise OptionError(f"executor = {shown(executor)}: {words}")
    suffix = None if results is None else suffix_of(results)
    check_writable(None if suffix == JSON_LINES else results)
    tasks = asked_for(workloads, pools, options, format_options).tasks()
    with ExitStack() as stack:
        journal = (
            None if results is None else stack.enter_context(closing(Journal(_lines_of(results, suffix))))
        )
        state = SweepState(tasks, journal, made_folder(plans), retry_failed, on_progress)
        state.report()
        waiting = state.waiting
        with interruption:
            if waiting and not interruption.asked:
                running = stack.enter_context(_running(executor, processes, len(waiting)))
                Drive(running, warm_up, plans is not None, state.take).run(
                    waiting, interruption, state.report
                )
        found = state.result()
    if results is not None and suffix != JSON_LINES:
        found.save(results)
    return found


def _lines_of(results: AnyPath, suffix: str | None) -> str:
    """Return the file with the lines of a file of results."""
    return f"{os.fspath(results)}{'' if suffix == JSON_LINES else JSON_LINES}"


@contextmanager
def _running(executor: Executor | None, processes: int | None, tasks: int) -> Iterator[Executor]:
    """Yield the executor, or processes that end with the ``with`` block, at most one for each task."""
    if executor is not None:
        yield executor
        return
    own = OneTaskProcesses(min(cores_for(processes)[0], tasks))
    try:
        own.start()
        yield own
    finally:
        own.shutdown(cancel_futures=True)
