"""The file of results: a line of JSON for each task that has ended, with which a sweep goes on."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import IO, Any, NamedTuple

from partitioner.analysis.sweeps.row import FAILED, FEASIBLE, INFEASIBLE, NO_PLAN, OPTIMAL, SweepRow
from partitioner.base.errors import Flaw, PartitionerError, WorkloadError, one_of, shown
from partitioner.base.files import path_name

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


# The rules for the fields of a row that is read from a file of results.

STATUSES = (OPTIMAL, FEASIBLE, INFEASIBLE, NO_PLAN, FAILED)
MOST = 10**15  # of devices and attempts
DEEPEST = 20  # levels of an option's value


class _Rule(NamedTuple):
    holds: Callable[[Any], bool]
    words: str


def flaws_of(record: Mapping[str, Any], where: str) -> list[Flaw]:
    """Return what is wrong with the fields of a row, all of which are known; `where` says which row it is.

    Examples
    --------
    >>> print(flaws_of({"key": "1f", "attempts": "2"}, "line 3")[0])
    line 3: attempts = '2': must be an integer of at least 0 and at most 1,000,000,000,000,000
    """
    found = [
        Flaw(where, name, shown(value), RULES[name].words)
        for name, value in record.items()
        if not RULES[name].holds(value)
    ]
    if found:
        return found
    if record.get("plan", "") not in ("", f"{record['key']}.json"):
        rule = "must be empty or the row's key with .json: the name of a file in the folder of plans"
        return [Flaw(where, "plan", shown(record["plan"]), rule)]
    if record.get("status") in (OPTIMAL, FEASIBLE) and None in (record.get("value"), record.get("bound")):
        rule = f"must be {one_of(None, STATUSES[2:])}, since value or bound is missing"
        return [Flaw(where, "status", shown(record["status"]), rule)]
    return []


def _text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a character of two
        return False
    return True


def _key(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isalnum()


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:
        return False


def _plain(value: object, depth: int = DEEPEST) -> bool:
    """Whether a value of an option is JSON that the writers of tables can take."""
    if isinstance(value, list | dict):
        inner = value if isinstance(value, list) else [*value, *value.values()]
        return depth > 0 and all(_plain(each, depth - 1) for each in inner)
    return value is None or isinstance(value, bool) or _text(value) or _number(value)


TEXT = _Rule(_text, "must be a text that UTF-8 can write")
COUNT = _Rule(_count, f"must be an integer of at least 0 and at most {MOST:,}")
OBJECT = _Rule(
    lambda value: isinstance(value, dict) and _plain(value),
    f"must be an object of finite numbers, texts, lists and objects, at most {DEEPEST} levels deep",
)
PERHAPS = _Rule(lambda value: value is None or _number(value), "must be a finite number or null")
RULES: Mapping[str, _Rule] = {
    "key": _Rule(_key, "must be a text of letters and digits"),
    "status": _Rule(lambda value: value in STATUSES, f"must be {one_of(None, STATUSES)}"),
    "options": OBJECT,
    "figures": OBJECT,
    "value": PERHAPS,
    "bound": PERHAPS,
    "seconds": _Rule(lambda value: _number(value) and value >= 0, "must be a finite number of at least 0"),
    **dict.fromkeys(("devices", "used", "attempts"), COUNT),
    **dict.fromkeys(
        ("workload", "pool", "objective", "split", "method", "stop_reason", "time_unit", "reason", "plan"),
        TEXT,
    ),
}
