"""The compilation of all kernels once on a machine, however many processes ask for it."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import partitioner
from partitioner.base.errors import PartitionerError
from partitioner.planning.warm_up.run import warm_up


@cache
def warm_up_once() -> bool:
    """Compile all kernels, unless a process on this machine has done so for the same files.

    Processes that ask at the same time wait for the one that compiles. If kernels cannot be
    compiled or kept, it is not tried again, and every run compiles what it needs.

    Returns
    -------
    bool
        Whether this call has compiled them.
    """
    from partitioner.base.compiled import temporary_folder

    folder = temporary_folder()
    if folder is None:
        return False
    mark = folder / f"warm-{_state()}"
    with _alone(folder / "warm-up.lock"):
        if mark.exists():
            return False
        with suppress(PartitionerError):
            warm_up()
        mark.touch()
    return True


def _state() -> str:
    """Return a hash of all that compiled kernels depend on: files, numba, the interpreter, the cache."""
    root = Path(partitioner.__file__).parent
    files = [(file, file.stat()) for file in sorted(root.rglob("*.py"))]
    known = [(str(file), state.st_mtime_ns, state.st_size) for file, state in files]
    rest = version("numba"), sys.version, os.environ.get("NUMBA_CACHE_DIR", "")
    return hashlib.sha256(repr((known, rest)).encode()).hexdigest()[:32]


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Run a ``with`` block while no other process on this machine runs it, where files can be locked."""
    try:
        import fcntl
    except ImportError:  # not a POSIX system
        yield
        return
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
