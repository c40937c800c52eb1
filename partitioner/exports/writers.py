"""Writing of plans to files, also in formats that other packages provide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from partitioner.base.errors import OptionError, PartitionerError, shown
from partitioner.base.file_types import check_suffixes, entry_for
from partitioner.base.files import write_bytes, write_text
from partitioner.base.registry import Registry
from partitioner.results.plan import Plan
from partitioner.workload.workload import Workload

TAKEN = (".json",)  # the suffix of plans


@dataclass(frozen=True)
class Writer:
    """A writer of plans in one format.

    Parameters
    ----------
    name
        The name of the format, for messages.
    suffixes
        The suffixes of its files, such as ``(".yaml", ".yml")``; ``".json"`` is reserved for plans.
    content
        A function of ``(plan, workload)`` that returns the content of the file, a text or bytes.

    Raises
    ------
    OptionError
        If a field is of another type.
    """

    name: str
    suffixes: tuple[str, ...]
    content: Callable[[Plan, Workload], str | bytes]

    def __post_init__(self) -> None:
        check_suffixes(f"writer {shown(self.name)}", self.suffixes, TAKEN)
        if not callable(self.content):
            raise OptionError(
                f"writer {shown(self.name)}: content = {shown(self.content)}: must be a function"
            )


WRITERS = Registry("writer", "partitioner.exports", Writer)


def save_plan(plan: Plan, workload: Workload, path: str | Path) -> None:
    """Write a plan with the writer for the file's suffix, or else as JSON; no partial file is written.

    Raises
    ------
    PartitionerError
        If the writer raises an error or returns neither a text nor bytes, or the file cannot be written.
    """
    writer = entry_for(path, WRITERS, TAKEN)
    if writer is None:
        plan.save(path)
        return
    content = _content(writer, plan, workload)
    if isinstance(content, str):
        write_text(path, content)
    else:
        write_bytes(path, content)


def _content(writer: Writer, plan: Plan, workload: Workload) -> str | bytes:
    try:
        content = writer.content(plan, workload)
    except PartitionerError:
        raise
    except Exception as error:  # the writer of another package may raise any error
        raise PartitionerError(f"writer {writer.name} failed: {type(error).__name__}: {error}") from error
    if not isinstance(content, str | bytes):
        raise PartitionerError(
            f"writer {writer.name} returned a {type(content).__name__}: must be a text or bytes"
        )
    return content
