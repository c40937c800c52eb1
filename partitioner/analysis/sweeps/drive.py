"""The course of a sweep: tasks go to an executor, and every one that ends becomes a row."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import replace

from partitioner.analysis.sweeps.layout_task import AnyTask
from partitioner.analysis.sweeps.row import FAILED, INFEASIBLE, NO_PLAN, SweepRow
from partitioner.base.clock import METER
from partitioner.base.errors import InfeasibleError, NoPlanFound, PartitionerError
from partitioner.base.interruption import Interruption
from partitioner.planning.layouts.result import LayoutPlan
from partitioner.planning.warm_up.once import warm_up_once
from partitioner.results.plan import Plan

TICK = 0.25  # seconds between two looks at requests to stop
ATTEMPTS = 2  # the second one while no other task runs, so that it fails by its own fault only
LOST = "its worker was lost"
Ended = tuple[SweepRow, str]


class Drive:
    """The tasks that an executor runs, and the queue in which their results arrive.

    Parameters
    ----------
    executor
        Runs the tasks.
    warm, keep_plans
        Whether kernels are compiled before the first task on a machine, and whether plans are sent back.
    take
        Called with every row, and the text of its plan if plans are kept.
    """

    def __init__(
        self, executor: Executor, warm: bool, keep_plans: bool, take: Callable[[SweepRow, str], None]
    ) -> None:
        self.executor, self.warm, self.keep_plans, self.take = executor, warm, keep_plans, take
        self.running: dict[Future[Ended], tuple[AnyTask, int]] = {}
        self.again: list[AnyTask] = []
        self.ended: queue.SimpleQueue[Future[Ended]] = queue.SimpleQueue()

    def run(self, tasks: Iterable[AnyTask], interruption: Interruption, look: Callable[[], None]) -> None:
        """Run the tasks until all have ended or a request to stop comes; call `look` several times a second.

        Tasks that ran out of memory or lost their worker are run again at the end, one after another.

        Raises
        ------
        PartitionerError
            If the executor takes no more tasks, or gives tasks up.
        """
        try:
            for task in tasks:
                self._submit(task, 1)
            self._listen_all(interruption, look)
            for task in self.again:
                if not interruption.asked:
                    self._submit(task, ATTEMPTS)
                    self._listen_all(interruption, look)
        finally:
            for future in self.running:
                future.cancel()

    def _listen_all(self, interruption: Interruption, look: Callable[[], None]) -> None:
        while self.running and not interruption.asked:
            self._listen()
            look()

    def _submit(self, task: AnyTask, attempt: int) -> None:
        try:
            future = self.executor.submit(solve_task, task, self.warm, self.keep_plans)
        except RuntimeError as error:  # broken, or shut down
            raise self._given_up(error) from error
        self.running[future] = task, attempt
        future.add_done_callback(self.ended.put)

    def _listen(self) -> None:
        try:
            future = self.ended.get(timeout=TICK)
        except queue.Empty:
            return
        task, attempt = self.running.pop(future)
        try:
            row, plan = future.result()
        except CancelledError as error:  # only the executor itself cancels here
            raise self._given_up(error) from error
        except Exception as error:  # of a broken pool, or Dask's KilledWorker
            row, plan = task.row(FAILED, reason=f"{LOST}: {type(error).__name__}: {error}"), ""
        if attempt < ATTEMPTS and row.reason.startswith((LOST, OUT_OF_MEMORY)):
            self.again.append(task)
        else:
            self.take(replace(row, attempts=attempt), plan)

    def _given_up(self, error: BaseException) -> PartitionerError:
        words = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return PartitionerError(f"the executor takes no more tasks ({words}); the rows until then are kept")


# What a worker does with a task: it solves it, and any error becomes a row.

OUT_OF_MEMORY = "out of memory"
WITHOUT_PLAN: dict[type[Exception], str] = {InfeasibleError: INFEASIBLE, NoPlanFound: NO_PLAN}


def solve_task(task: AnyTask, warm: bool, keep_plan: bool) -> tuple[SweepRow, str]:
    """Return the row of a task, and its plan as JSON if that is to be kept, else an empty text.

    With `warm` all kernels are compiled before the first task on this machine.
    """
    if warm:
        warm_up_once()
    began, compiled = time.perf_counter(), METER.seconds
    plan: Plan | LayoutPlan | None = None
    try:
        status, found, plan = task.solve()
    except Exception as error:  # a row says what a user would have seen
        status, found = WITHOUT_PLAN.get(type(error), FAILED), {"reason": _reason(error)}
    seconds = time.perf_counter() - began - (METER.seconds - compiled)
    row = task.row(status, seconds=round(seconds, 4), **found)
    return row, plan.to_json() + "\n" if keep_plan and plan is not None else ""


def _reason(error: Exception) -> str:
    """Return an error in words."""
    if isinstance(error, PartitionerError):
        return str(error)
    name = OUT_OF_MEMORY if isinstance(error, MemoryError) else type(error).__name__
    return f"{name}: {error}" if str(error) else name
