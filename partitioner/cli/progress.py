"""Progress on the terminal; nothing is written if standard error is not one."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from rich.console import Console
from rich.status import Status
from rich.text import Text

from partitioner.base.safe_text import visible

if TYPE_CHECKING:
    from partitioner.methods.method import Progress


class ProgressLine:
    """A line on standard error with the progress of a run, which is erased at the end."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, markup=False, emoji=False)
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
        self.write(progress_text(progress))

    def write(self, text: str) -> None:
        """Show a text."""
        if self._status is not None:
            self._status.update(Text(visible(text)))


def progress_text(progress: Progress) -> str:
    """Return the progress of a run in one line.

    Examples
    --------
    >>> from partitioner import Progress
    >>> progress_text(Progress("ideals", 1200, 4800, 7.5, 6.25, 3.2))
    'ideals 1,200 of 4,800, value 7.5, bound 6.25, 3 s'
    >>> progress_text(Progress("compiling", 0, 0, float("inf"), 0.0, 1.0))
    'compiling, once on this machine, 1 s'
    """
    of = f" of {progress.total:,}" if progress.total else ""
    done = f" {progress.done:,}{of}" if progress.done or progress.total else ""
    if progress.phase == "compiling":
        return f"compiling{done}, once on this machine, {progress.seconds:.0f} s"
    if progress.value == float("inf") and not progress.bound:
        return f"{progress.phase}{done}, {progress.seconds:.0f} s"
    known = f"value {progress.value:.6g}, bound {progress.bound:.6g}"
    return f"{progress.phase}{done}, {known}, {progress.seconds:.0f} s"
