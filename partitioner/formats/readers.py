"""Readers of workload files that other packages provide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, OptionError, PartitionerError, WorkloadError, shown
from partitioner.base.file_types import check_suffixes, entry_for
from partitioner.base.registry import Registry
from partitioner.workload.workload import Workload

TAKEN = (".json", ".txt", ".csv", ".onnx")  # of workload files, PipeDream's profiles, tables and ONNX models


@dataclass(frozen=True)
class Reader:
    """A reader of workload files of one format.

    Parameters
    ----------
    name
        The name of the format, for messages.
    suffixes
        The suffixes of its files, such as ``(".lines",)``; ``".json"``, ``".txt"``, ``".csv"`` and
        ``".onnx"`` are reserved.
    read
        A function of ``(path)`` that returns a :class:`partitioner.Workload`.

    Raises
    ------
    OptionError
        If a field is of another type.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[Path], Workload]

    def __post_init__(self) -> None:
        check_suffixes(f"reader {shown(self.name)}", self.suffixes, TAKEN)
        if not callable(self.read):
            raise OptionError(f"reader {shown(self.name)}: read = {shown(self.read)}: must be a function")


READERS = Registry("reader", "partitioner.formats", Reader)


def read_foreign(path: str | Path) -> Workload | None:
    """Return the workload that the reader for the file's suffix reads; None if there is no such reader.

    Raises
    ------
    WorkloadError
        If the reader raises an error, or does not return a workload.
    """
    reader = entry_for(path, READERS, TAKEN)
    if reader is None:
        return None
    try:
        workload = reader.read(Path(path))
    except PartitionerError:
        raise
    except Exception as error:  # the reader of another package may raise any error
        words = f"reader {reader.name} failed: {type(error).__name__}: {error}"
        raise WorkloadError([Flaw("file", "", "", words)], str(path)) from error
    require_type(f"result of reader {reader.name}", workload, Workload)
    return workload
