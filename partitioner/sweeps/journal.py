"""The file of results: a line of JSON for each task that has ended, with which a sweep goes on."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO

from partitioner.base.errors import Flaw, PartitionerError, WorkloadError, shown
from partitioner.base.files import path_name
from partitioner.sweeps.row import SweepRow
from partitioner.sweeps.row_rules import flaws_of

KNOWN = {entry.name for entry in fields(SweepRow)}
START = b'{"key": "'  # of every line
NEEDED = ("key", "workload", "pool", "devices", "objective", "status")


class Journal:
    """The file of results of a sweep, which no other sweep can open at the same time.

    A line is written as a whole and is on the disk before the next task counts as done. A line without its
    end, which a crash leaves behind, is removed when the file is opened.

    Parameters
    ----------
    path
        The file; it is made if it does not exist.

    Raises
    ------
    PartitionerError
        If the file cannot be written, or another sweep writes it.
    WorkloadError
        Naming the file and the line, if a line is not a row of a sweep.

    Attributes
    ----------
    rows
        The rows of the file by key; of several with one key, the last one.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = path_name(path)
        try:
            self._file = Path(path).open("a+b")  # noqa: SIM115 - closed by `close`
        except (OSError, ValueError) as error:
            raise PartitionerError(f"{self.path}: cannot be written: {_words(error)}") from error
        try:
            if not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                raise PartitionerError(
                    f"{self.path}: must be a plain file, from whose rows a sweep can go on"
                )
            _lock(self._file, self.path)
            self.rows = self._read()
        except BaseException:
            self._file.close()
            raise

    def append(self, row: SweepRow) -> None:
        """Write a row; it is on the disk when this returns.

        Raises
        ------
        PartitionerError
            If the disk is full, or the file cannot be written for another reason.
        """
        try:
            self._file.write(row_line(row).encode())
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise PartitionerError(f"{self.path}: cannot be written: {_words(error)}") from error
        self.rows[row.key] = row

    def close(self) -> None:
        """Close the file, so that another sweep can open it.

        Raises
        ------
        PartitionerError
            If what is left cannot be written, as on a full disk.
        """
        try:
            self._file.close()
        except OSError as error:
            raise PartitionerError(f"{self.path}: cannot be written: {_words(error)}") from error

    def _read(self) -> dict[str, SweepRow]:
        self._file.seek(0)
        content = self._file.read()
        *lines, torn = content.split(b"\n")
        rows = [self._row(number, line) for number, line in enumerate(lines, 1)]
        if torn[: len(START)] != START[: len(torn)]:
            raise self._refused(len(lines) + 1, torn)
        self._file.truncate(len(content) - len(torn))
        return {row.key: row for row in rows}

    def _row(self, number: int, line: bytes) -> SweepRow:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict) or not set(NEEDED) <= record.keys() <= KNOWN:
            raise self._refused(number, line)
        if flaws := flaws_of(record, f"line {number}"):
            raise WorkloadError(flaws, self.path)
        return SweepRow(**record)

    def _refused(self, number: int, line: bytes) -> WorkloadError:
        rule = "must be a row of a sweep; name another file for the results"
        return WorkloadError(
            [Flaw(f"line {number}", "", shown(line.decode(errors="replace")), rule)], self.path
        )


def row_line(row: SweepRow) -> str:
    """Return a row as a line of JSON."""
    return json.dumps(asdict(row)) + "\n"


def _lock(file: IO[bytes], name: str) -> None:
    """Lock a file until it is closed, where files can be locked."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise PartitionerError(f"{name}: another sweep writes this file") from error
    except OSError:  # a stream, or a file system without locks
        return


def _words(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
