"""Functions in files of Python code that a command line names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from partitioner.base.errors import OptionError, nearest, shown

NAME = "partitioner_script"
CALL_RULE = (
    "must return (model, args), with args a tuple, or a dict by name; for training (model, args, loss) with "
    "the loss of the output, or (model, args, loss, target) with that of the output and the target"
)
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


class ScriptCall(NamedTuple):
    """A model of torch with the arguments of a call, and what makes its loss.

    Parameters
    ----------
    model
        The model.
    args, kwargs
        The arguments of a call for one microbatch, by position and by name.
    loss
        What makes a scalar of the output, and of the target if there is one; None for inference.
    targets
        The target of the loss in a tuple, which is empty if the loss takes none.
    """

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loss: Any
    targets: tuple[Any, ...]


def call_made_by(text: str) -> ScriptCall:
    """Return what a function like ``model.py:make`` returns as a call of a model.

    Raises
    ------
    OptionError
        Those of `made_by`; or if it returns something else than ``CALL_RULE`` says.
    """
    found = made_by(text)
    if not 2 <= len(found) <= 4 or not isinstance(found[1], tuple | list | dict):
        raise OptionError(f"{text}: {CALL_RULE}")
    model, given, loss, *targets = (*found, None)[: max(3, len(found))]
    args, kwargs = ((), given) if isinstance(given, dict) else (tuple(given), {})
    return ScriptCall(model, args, kwargs, loss, tuple(targets))


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
