"""Reading of strict JSON, and writing of whole files: a file holds the new content or stays as it was."""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from partitioner.base.errors import Flaw, PartitionerError, WorkloadError, shown

SYSTEM, SHARED_MEMORY = ("/dev/", "/proc/"), "/dev/shm/"
MOST_LINKS = 40  # that are followed one after the other, as on Linux
NAME_KEPT = 200  # characters of a file's name in that of its temporary file, which may have 255


def path_name(path: object) -> str:
    """Return a path as a text.

    Raises
    ------
    WorkloadError
        If `path` is neither a text nor a path.
    """
    name = os.fspath(path) if isinstance(path, str | os.PathLike) else None
    if not isinstance(name, str):
        raise WorkloadError(
            [Flaw("file", "path", shown(path), "must be a text or a path, such as pathlib's")]
        )
    return name


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a path names a folder; False for names that no folder can have."""
    try:
        return Path(path_name(path)).is_dir()
    except (OSError, ValueError):
        return False


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a UTF-8 file.

    Raises
    ------
    WorkloadError
        If the file cannot be read.
    """
    name = path_name(path)
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = "is not a UTF-8 text file" if isinstance(error, UnicodeError) else _reason(error)
        raise WorkloadError([Flaw("file", "", "", reason)], name) from error


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the content of a JSON file: UTF-8, without NaN or infinity, no key twice in one object.

    Raises
    ------
    WorkloadError
        If the file cannot be read or is not JSON.
    """
    source, text = path_name(path), read_text(path)
    try:
        return json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_repeats)
    except _NotStrictError as error:
        raise WorkloadError([error.flaw], source) from error
    except RecursionError as error:
        raise WorkloadError([Flaw("file", "", "", "is nested too deeply")], source) from error
    except ValueError as error:
        raise WorkloadError([Flaw("file", "", "", f"is not JSON: {error}")], source) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a file as a whole: it holds the new text or stays as it was.

    Raises
    ------
    PartitionerError
        If the file cannot be written.
    """
    try:
        content = text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PartitionerError(f"{path_name(path)}: cannot be written: {_reason(error)}") from error
    write_bytes(path, content)


def write_bytes(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file as a whole: it holds the new content or stays as it was.

    A link stays, and the file that it points to is written. What is no plain file, such as a terminal, a pipe
    or another device, is written to as it is; so is an open file that has a name in ``/dev`` or ``/proc``.

    Raises
    ------
    PartitionerError
        If the file cannot be written.
    """
    named = Path(path_name(path))
    try:
        target = _followed(named)
        if _is_stream(target):
            with target.open("ab") as stream:  # a redirected standard output is not cut off
                stream.write(content)
            return
        handle, name = _open_temporary(target)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(target)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except (OSError, ValueError) as error:  # a ValueError for a name that no file can have
        raise PartitionerError(f"{named}: cannot be written: {_reason(error)}") from error


def check_writable(*paths: str | os.PathLike[str] | None) -> None:
    """Raise if :func:`write_bytes` could not write one of the paths, before the result is computed.

    No file is left behind. A path that is None is skipped.

    Raises
    ------
    PartitionerError
        Naming the first path that cannot be written, and why.
    """
    for path in paths:
        if path is not None:
            _try_to_write(Path(path))


def _try_to_write(named: Path) -> None:
    try:
        target = _followed(named)
        if target.is_dir() or (_is_stream(target) and not os.access(target, os.W_OK)):
            code = errno.EISDIR if target.is_dir() else errno.EACCES
            raise OSError(code, os.strerror(code))
        if _is_stream(target):
            return
        handle, name = _open_temporary(target)
        os.close(handle)
        Path(name).unlink()
    except (OSError, ValueError) as error:
        raise PartitionerError(f"{named}: cannot be written: {_reason(error)}") from error


def _followed(path: Path) -> Path:
    """Return what a path leads to, link by link, up to a name of the system such as /dev/stdout."""
    for _ in range(MOST_LINKS):
        if _is_of_system(path) or not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_of_system(path: Path) -> bool:
    """Whether a path names a device or an open file."""
    name = str(path.absolute())
    return name.startswith(SYSTEM) and not name.startswith(SHARED_MEMORY)


def _is_stream(target: Path) -> bool:
    """Whether the target exists and must not be replaced: a terminal, a pipe, /dev/null, or a folder."""
    return target.exists() and (_is_of_system(target) or not target.is_file())


def _open_temporary(target: Path) -> tuple[int, str]:
    """Open a new file in the folder of the target, with its permissions; return handle and name.

    A target that does not exist gets those that the system gives new files.
    """
    name = str(target.parent / f".{target.name[:NAME_KEPT]}.{secrets.token_hex(8)}")
    handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        if target.exists():
            Path(name).chmod(target.stat().st_mode & 0o777)
    except BaseException:
        os.close(handle)
        Path(name).unlink(missing_ok=True)
        raise
    return handle, name


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


class _NotStrictError(Exception):
    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw)
        self.flaw = flaw


def _no_constant(name: str) -> NoReturn:
    raise _NotStrictError(Flaw("file", "", name, "numbers must be finite"))


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        times = Counter(key for key, _ in pairs)
        twice = next(key for key, count in times.items() if count > 1)
        raise _NotStrictError(Flaw(_place(record), twice, "", "is given twice in one object"))
    return record


def _place(record: dict[str, Any]) -> str:
    if "id" in record:
        return f"node {shown(record['id'])}"
    if "sourceId" in record and "destId" in record:
        return f"edge {shown(record['sourceId'])} -> {shown(record['destId'])}"
    return "file"
