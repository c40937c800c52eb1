"""Compiled kernels: numba's decorator, with a cache in a temporary folder where it finds no other place."""

from __future__ import annotations

import functools
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
from numba.core import event

from partitioner.base.clock import METER

Function = Callable[..., Any]


def njit(*, cache: bool = False, **options: Any) -> Callable[[Function], Any]:
    """Return a decorator that compiles a function when it is first called.

    Parameters
    ----------
    cache
        Keep the compiled code on disk: where numba keeps it, else in :func:`temporary_folder`, else
        nowhere.
    **options
        Of ``numba.njit``.
    """

    def decorate(function: Function) -> Any:
        try:
            kernel = numba.njit(cache=cache, **options)(function)
        except RuntimeError:  # neither the folder of the source nor the user's cache can be written
            kernel = _cached_elsewhere(numba.njit(**options)(function))
        return _forgiving(kernel)

    return decorate


def _forgiving(kernel: Any) -> Any:
    """Return the kernel, which compiles anew if its cache names classes that do not exist any more.

    Numba looks whether the source is the same only after it has loaded the types of the arguments, and
    raises if an earlier version of the package has left some that this one names otherwise.
    """
    index = getattr(kernel._cache, "_cache_file", None)  # None: the kernel is not cached
    if index is not None:
        load = index._load_index

        def load_known() -> Any:
            try:
                return load()
            except (AttributeError, ImportError):
                return {}

        index._load_index = load_known
    return kernel


def cache_note() -> str:
    """Where compiled code is kept, in words; empty if numba found its usual place."""
    if not _elsewhere:
        return ""
    why = "neither the package's folder nor the user's cache folder can be written"
    folder = temporary_folder()
    where = f"are cached in {folder}" if folder else "are compiled in every process"
    return f"the kernels {where}: {why}"


@functools.cache
def temporary_folder() -> Path | None:
    """The user's own folder for compiled code below the temporary one; None if there can be none.

    Code is loaded from it, so a folder that another user owns or may write to is refused.
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
    """Tells the meter when numba compiles a kernel of this package; loading one from the cache is none."""

    def on_start(self, event: event.Event) -> None:
        if _is_ours(event):
            METER.begin()

    def on_end(self, event: event.Event) -> None:
        if _is_ours(event):
            METER.end()


def _is_ours(happened: event.Event) -> bool:
    module: str = happened.data["dispatcher"].py_func.__module__
    return module.startswith(__name__.partition(".")[0] + ".")


_compilations = _Compilations()
METER.connect(
    lambda: event.register("numba:compile", _compilations),  # type: ignore[no-untyped-call]
    lambda: event.unregister("numba:compile", _compilations),  # type: ignore[no-untyped-call]
)
_elsewhere: list[str] = []  # kernels for whose cache numba found no place


def _cached_elsewhere(kernel: Any) -> Any:
    """The kernel with a cache in the temporary folder, or as it is if there is no such folder."""
    _elsewhere.append(kernel.__name__)
    folder = temporary_folder()
    if folder is not None:
        kernel._cache = _cache_class(folder)(kernel.py_func)
    return kernel


@functools.cache
def _cache_class(folder: Path) -> type[Any]:
    """Numba's cache of compiled functions, in a given folder."""
    from numba.core import caching

    class Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
        def __init__(self, py_func: Any, py_file: str) -> None:
            self._py_file = py_file
            self._lineno = py_func.__code__.co_firstlineno

        def get_cache_path(self) -> str:
            subpath: str = super().get_suitable_cache_subpath(self._py_file)  # type: ignore[no-untyped-call]
            return str(folder / subpath)

    class Implementation(caching.CompileResultCacheImpl):
        _locator_classes = [Locator]  # noqa: RUF012 - as numba has it

    class Cache(caching.FunctionCache):
        _impl_class = Implementation

    return Cache
