"""Checks of the types of arguments, made where a call enters the package."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from partitioner.base.errors import Flaw, OptionError, WorkloadError, one_of, shown

MANY = 10**15  # the largest count; a double represents every whole number up to it exactly


def require_type(name: str, value: object, kind: type, rule: str = "") -> None:
    """Raise if a part of a workload or of a result is not of type `kind`.

    Raises
    ------
    WorkloadError
        Naming the argument, the type of the value, and `rule` (by default the type that is required).

    Examples
    --------
    >>> require_type("count", "many", int)
    Traceback (most recent call last):
    ...
    partitioner.base.errors.WorkloadError: count: str: must be of type int
    """
    if not isinstance(value, kind):
        package = kind.__module__.split(".")
        place = ".".join(package[: 2 if package[1:2] in (["schedule"], ["estimation"]) else 1])
        words = (
            f"must be a {place}.{kind.__name__}"
            if place != "builtins"
            else f"must be of type {kind.__name__}"
        )
        raise WorkloadError([Flaw(name, "", type(value).__name__, rule or words)])


def require_text(**arguments: object) -> None:
    """Raise if one of the options is not a text.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise OptionError(f"{name} = {shown(value)}: must be a text")


def require_callable(**arguments: object) -> None:
    """Raise if one of the options is neither None nor a function.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    for name, value in arguments.items():
        if value is not None and not callable(value):
            raise OptionError(f"{name} = {shown(value)}: must be a function, or None")


def require_mapping(name: str, value: object, rule: str) -> None:
    """Raise if the value is not a mapping.

    Raises
    ------
    WorkloadError
        Naming the argument and its value.
    """
    require_type(name, value, Mapping, rule)


def is_count(value: object, least: int = 1, most: int = MANY) -> bool:
    """Whether the value is a whole number from `least` to `most`."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_one_of(value: object, known: Container[object]) -> bool:
    """Whether the value is a text or None, and one of the known values."""
    return (value is None or isinstance(value, str)) and value in known


def check_counts(least: int = 1, /, **counts: object) -> None:
    """Raise if a value is not a whole number of at least `least`.

    Raises
    ------
    OptionError
        Naming the first such option, its value and what it may be.
    """
    for name, value in counts.items():
        if not is_count(value, least):
            raise OptionError(f"{name} = {shown(value)}: must be an integer of at least {least}")


def check_word(name: str, value: object, known: Collection[str]) -> None:
    """Raise if the value is not one of the known words.

    Raises
    ------
    OptionError
        Naming the option, its value, the known words and the word that is spelled most like the value.
    """
    if value is None or not is_one_of(value, known):
        raise OptionError(f"{name} = {shown(value)}: must be {one_of(value, known)}")


def require_items(name: str, value: object) -> list[Any]:
    """Return the items of a sequence.

    Raises
    ------
    WorkloadError
        If the value is a text or has no items.
    """
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise WorkloadError([Flaw(name, "", shown(value), "must be a sequence")])
    try:
        return list(value)
    except TypeError:  # a numpy array without dimensions
        raise WorkloadError([Flaw(name, "", shown(value), "must be a sequence")]) from None
