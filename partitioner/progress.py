"""Progress on the terminal; nothing where standard error is not one."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status

if TYPE_CHECKING:
    from partitioner.methods.method import Progress


class ProgressLine:
    """One line on standard error that says how far a run has come, gone when it ends."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._status: Status | None = None

    def __enter__(self) -> ProgressLine:
        if self._console.is_terminal:
            self._status = self._console.status("reading")
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def show(self, progress: Progress) -> None:
        """Show the state of the run."""
        if self._status is not None:
            of = f" of {progress.total:,}" if progress.total else ""
            self._status.update(
                f"{progress.phase} {progress.done:,}{of}, value {progress.value:.6g}, "
                f"bound {progress.bound:.6g}, {progress.seconds:.0f} s"
            )
