"""Solvers in this process instead of processes of their own, which take longer to start than to solve."""

from __future__ import annotations

from collections import Counter, deque

from partitioner.base.registry import imported
from partitioner.methods.solvers.backends.backend import Job, News
from partitioner.methods.solvers.worker_pool import Event

used: Counter[str] = Counter()
"""How often each solver was called, by its place."""


class InlineWorker:
    """Stands in for a worker process: a job is done when it is given."""

    alive = True

    def __init__(self, events: deque[Event]) -> None:
        self.events = events

    def submit(self, job: Job) -> None:
        used[job.solver] += 1
        answer = imported(job.solver)(job.payload, job.limits, lambda *news: self._tell(News(*news)))
        self._tell(answer)

    def kill(self) -> None:
        """There is nothing to end."""

    def _tell(self, message: object) -> None:
        self.events.append(Event(self, message))  # type: ignore[arg-type]


class InlineWorkerPool:
    """Stands in for the pool of worker processes."""

    def __init__(self) -> None:
        self.events: deque[Event] = deque()

    def start(self) -> InlineWorker:
        return InlineWorker(self.events)

    def next(self, seconds: float) -> Event | None:
        return self.events.popleft() if self.events else None

    def close(self) -> None:
        """Nothing is left behind."""
