"""Readers of workload files that other packages bring."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from partitioner.base.argument_types import require_type
from partitioner.base.errors import Flaw, OptionError, PartitionerError, WorkloadError, shown
from partitioner.base.file_types import check_suffixes, entry_for
from partitioner.base.registry import Registry
from partitioner.workload.workload import Workload

TAKEN = (".json", ".txt")  # workload files and PipeDream's profiles


@dataclass(frozen=True)
class Reader:
    """What reads workload files of one format.

    Parameters
    ----------
    name
        The format, for messages.
    suffixes
        The ends of the names of its files, such as ``(".onnx",)``; ``".json"`` and ``".txt"`` are taken.
    read
        Makes a :class:`partitioner.Workload` of a file: ``(path)``.

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
    """Read a file with the reader for it; None if there is no reader for it.

    Raises
    ------
    WorkloadError
        If the reader raises an error, or makes no workload.
    """
    reader = entry_for(path, READERS, TAKEN)
    if reader is None:
        return None
    try:
        workload = reader.read(Path(path))
    except PartitionerError:
        raise
    except Exception as error:  # a reader of another package may raise any
        words = f"reader {reader.name} failed: {type(error).__name__}: {error}"
        raise WorkloadError([Flaw("file", "", "", words)], str(path)) from error
    require_type(f"what reader {reader.name} returns", workload, Workload)
    return workload
