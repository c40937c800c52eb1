"""Functions in files of Python code that a command line names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from partitioner.base.errors import OptionError, nearest, shown

NAME = "partitioner_script"
RULE = "must be a file and a function in it, such as model.py:make"


def made_by(text: str) -> tuple[Any, ...]:
    """Return what a function returns that is named by its file, as in ``model.py:make``.

    The file is run as a module that other modules do not see; the files beside it can be imported.

    Raises
    ------
    OptionError
        Naming the file, the function and the rule: if there is no such file or function, if either raises an
        exception, or if the function does not return a tuple.
    """
    file, colon, function = text.rpartition(":")
    if not (colon and file and function):
        raise OptionError(f"{shown(text)}: {RULE}")
    path = Path(file).absolute()
    if not path.is_file():
        raise OptionError(f"{text}: {file} is not a file: {RULE}")
    with _importable(path.parent):
        found = _returned(text, function, _module(text, path))
    if not isinstance(found, tuple):
        raise OptionError(f"{text}: {function} returned {shown(found)}: must return a tuple")
    return found


def _module(text: str, path: Path) -> ModuleType:
    spec = spec_from_file_location(NAME, path)
    if spec is None or spec.loader is None:
        raise OptionError(f"{text}: {path.name} must be a file of Python code, with the suffix .py")
    module = module_from_spec(spec)
    sys.modules[NAME] = module  # dataclasses look their module up while the file is run
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # a file may raise anything
        raise OptionError(
            f"{text}: {path.name} raised {_named(error)}: must run without an exception"
        ) from error
    finally:
        del sys.modules[NAME]
    return module


def _returned(text: str, function: str, module: ModuleType) -> Any:
    call = getattr(module, function, None)
    if not callable(call):
        known = [name for name, each in vars(module).items() if callable(each) and not name.startswith("_")]
        raise OptionError(f"{text}: the file has no function {function}{nearest(function, known)}: {RULE}")
    try:
        return call()
    except Exception as error:  # so may a function
        raise OptionError(
            f"{text}: {function} raised {_named(error)}: must run without an exception"
        ) from error


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").splitlines()[0]


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let the modules of a folder be imported, as Python does it for the file that it runs."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        if str(folder) in sys.path:
            sys.path.remove(str(folder))
