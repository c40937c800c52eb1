"""Numba's decorator for kernels, with a cache in a temporary folder if no other folder can be written."""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core import event
from numba.core.bytecode import FunctionIdentity

from partitioner.base.clock import METER

Function = Callable[..., Any]


def njit(*, cache: bool = False, inner: bool = False, **options: Any) -> Callable[[Function], Any]:
    """Return a decorator that compiles a function when it is first called.

    Parameters
    ----------
    cache
        Whether to keep the compiled code on disk: in numba's folder if that can be written, else in
        :func:`temporary_folder`. If neither can be written, it is not kept.
    inner
        Whether other kernels alone call it. It gets no entry for Python then, which takes a fifth of the
        compiling where the arguments are records of many arrays; a call from Python is a TypeError.
    **options
        Options of ``numba.njit``. No kernel gets an entry for C, which would be a fifth of the compiling.
        Of the two ways to inline, ``inline="always"`` copies a function's source into every call, which runs
        fastest in the innermost loops; ``forceinline=True`` copies what it is compiled to, which compiles in
        less time: its types are found once.
    """
    options["no_cfunc_wrapper"] = True
    if inner:
        options["no_cpython_wrapper"] = True

    def decorate(function: Function) -> Any:
        try:
            kernel = numba.njit(cache=cache, **options)(function)
        except RuntimeError:  # neither the folder of the source nor the user's cache can be written
            kernel = _cached_elsewhere(numba.njit(**options)(function))
        if cache:
            _folders.add(kernel._cache.cache_path)
        if inner:
            _close(kernel)
        return _forgiving(kernel)

    return decorate


class _RandomNumbers(Iterator[int]):
    """Random numbers of 56 bits."""

    def __next__(self) -> int:
        return int.from_bytes(os.urandom(7), "little")


# Numba numbers the functions that a process compiles; a symbol in cached code is the name and the
# number. `np.sort` and `np.argsort` compile functions of one name, so two kernels that two processes compiled
# could hold two functions under one symbol; a process that loaded both called the wrong one, and crashed.
FunctionIdentity._unique_ids = _RandomNumbers()  # type: ignore[assignment]


def _close(kernel: Any) -> None:
    """Let no call from Python reach a kernel that has no entry for it, which would be a crash."""

    def refuse(*arguments: Any, **options: Any) -> None:
        raise TypeError(f"kernel {kernel.__name__}: other kernels alone may call it")

    kernel._insert = lambda *overload, **options: None  # the table of what Python may call stays empty
    kernel._compile_for_args = refuse


def _forgiving(kernel: Any) -> Any:
    """Return the kernel, changed to compile again what cannot be read, and to run if it cannot be kept.

    Numba unpickles what it finds: also an empty file, what a crash cut off, what an earlier version of the
    package wrote with classes or modules that no longer exist.
    """
    cache = kernel._cache
    if not hasattr(cache, "_cache_file"):  # the kernel is not cached
        return kernel
    load, save = cache.load_overload, cache.save_overload

    def load_sound(*call: Any) -> Any:
        try:
            return load(*call)
        except Exception as error:
            if not isinstance(error, AttributeError | ImportError):  # these tell of an earlier version
                _damaged.add(kernel.__name__)
            with suppress(OSError):
                cache.flush()
            return None

    def save_if_possible(*call: Any) -> None:
        try:
            save(*call)
        except OSError as error:
            _not_kept[kernel.__name__] = error.strerror or str(error)

    cache.load_overload, cache.save_overload = load_sound, save_if_possible
    return kernel


def cache_note() -> str:
    """Return a note on where compiled code is kept, on damaged files and on kernels that could not be kept.

    It is empty if numba can write its default folder and read what is there.
    """
    notes = []
    if _elsewhere:
        why = "neither the package's folder nor the user's cache folder can be written"
        folder = temporary_folder()
        where = f"are cached in {folder}" if folder else "are compiled in every process"
        notes.append(f"the kernels {where}: {why}")
    if _damaged:
        notes.append(f"the cached code of {_listed(_damaged)} was damaged: compiled again")
    if _not_kept:
        notes.append(f"{_listed(_not_kept)} could not be kept: {next(iter(_not_kept.values()))}")
    return "; ".join(notes)


def _listed(kernels: Iterable[str]) -> str:
    names = sorted(kernels)
    return f"kernel {names[0]}" if len(names) == 1 else f"{len(names)} kernels"


def kernel_folder() -> str | None:
    """Return the folder below which the loaded kernels are kept; None if there are some that are not kept.

    At least one module with kernels must be loaded.
    """
    kept = {folder for folder in _folders if folder is not None}
    return os.path.commonpath(kept) if kept == _folders else None


@functools.cache
def temporary_folder() -> Path | None:
    """Return the user's folder for compiled code, below the system's temporary folder; None if there is none.

    Code is loaded from this folder, so one that another user owns or may read or write is refused.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    try:
        folder = Path(tempfile.gettempdir()) / f"partitioner-kernels-{'' if user is None else user}"
        folder.mkdir(mode=0o700, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return None
    private = user is None or (state.st_uid == user and not state.st_mode & 0o077)
    return folder if private and stat.S_ISDIR(state.st_mode) else None


class _Compilations(event.Listener):
    """A listener that tells the meter when numba compiles a kernel of this package, not when it loads one."""

    def on_start(self, event: event.Event) -> None:
        if _is_ours(event):
            METER.begin()

    def on_end(self, event: event.Event) -> None:
        if _is_ours(event):
            METER.end()


def _is_ours(compilation: event.Event) -> bool:
    module: str = compilation.data["dispatcher"].py_func.__module__
    return module.startswith(__name__.partition(".")[0] + ".")


_compilations = _Compilations()
METER.connect(
    lambda: event.register("numba:compile", _compilations),  # type: ignore[no-untyped-call]
    lambda: event.unregister("numba:compile", _compilations),  # type: ignore[no-untyped-call]
)
_folders: set[str | None] = set()  # where kernels are kept; None if some are not
_elsewhere: list[str] = []  # names of the kernels for whose cache numba found no folder to write
_damaged: set[str] = set()  # names of the kernels whose cached code could not be read
_not_kept: dict[str, str] = {}  # names of the kernels that could not be written to the cache, and why


def _cached_elsewhere(kernel: Any) -> Any:
    """Return the kernel with a cache in the temporary folder; unchanged if there is no such folder."""
    _elsewhere.append(kernel.__name__)
    folder = temporary_folder()
    if folder is not None:
        kernel._cache = _cache_class(folder)(kernel.py_func)
    return kernel


@functools.cache
def _cache_class(folder: Path) -> type[Any]:
    """Return the class of numba's cache of compiled functions, changed to use the given folder."""
    from numba.core import caching

    class Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
        def __init__(self, py_func: Any, py_file: str) -> None:
            self._py_file = py_file
            self._lineno = py_func.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            subpath: str = super().get_suitable_cache_subpath(self._py_file)  # type: ignore[no-untyped-call]
            return str(folder / subpath)

    class Implementation(caching.CompileResultCacheImpl):
        _locator_classes = [Locator]  # noqa: RUF012 - numba's attribute is a list, too

    class Cache(caching.FunctionCache):
        _impl_class = Implementation

    return Cache


@njit(inline="always")
def overwrite(target: Any, source: Any) -> None:
    """Copy one array into another of the same length.

    In a kernel, numba's own ``target[:] = source`` compiles 37 functions for the text of its error.
    """
    for i in range(len(source)):
        target[i] = source[i]


@njit(cache=True, inner=True)
def stable_order(keys: Any) -> Any:
    """Return the places of an array's entries by rising entry, those of equal entries in their order.

    Numba's own stable ``argsort`` compiles ten times as long.
    """
    n, width = len(keys), 1
    order, merged = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    while width < n:
        for begin in range(0, n, 2 * width):
            middle, end = min(begin + width, n), min(begin + 2 * width, n)
            i, j = begin, middle
            for k in range(begin, end):
                if i < middle and (j == end or keys[order[i]] <= keys[order[j]]):
                    merged[k] = order[i]
                    i += 1
                else:
                    merged[k] = order[j]
                    j += 1
        order, merged = merged, order
        width *= 2
    return order


@njit(cache=True, inner=True, _nrt=False)
def first_at_least(values: Any, begin: int, end: int, limit: float) -> int:
    """Return the first place from `begin` on whose value is not below a limit, or `end`; values rise."""
    while begin < end:
        middle = (begin + end) >> 1
        if values[middle] < limit:
            begin = middle + 1
        else:
            end = middle
    return begin
