"""The types of arguments, checked where a call enters the package."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

from partitioner.base.errors import Flaw, OptionError, WorkloadError, one_of, shown

MANY = 10**15  # the largest count; every whole number up to it is one of doubles, too


def require_type(name: str, value: object, kind: type, rule: str = "") -> None:
    """Refuse an object of the workload or of a result that is of another type.

    Raises
    ------
    WorkloadError
        Naming the argument, the value and the type.

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
    """Refuse options that are no texts.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    for name, value in arguments.items():
        if not isinstance(value, str):
            raise OptionError(f"{name} = {shown(value)}: must be a text")


def require_callable(**arguments: object) -> None:
    """Refuse options that are neither None nor a function.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    for name, value in arguments.items():
        if value is not None and not callable(value):
            raise OptionError(f"{name} = {shown(value)}: must be a function, or None")


def require_mapping(name: str, value: object, rule: str) -> None:
    """Refuse what is no mapping.

    Raises
    ------
    WorkloadError
        Naming the argument and its value.
    """
    require_type(name, value, Mapping, rule)


def is_count(value: object, least: int = 1, most: int = MANY) -> bool:
    """Whether the value is a whole number in the range."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_one_of(value: object, known: Container[object]) -> bool:
    """Whether the value is one of the texts, or the None, that are known."""
    return (value is None or isinstance(value, str)) and value in known


def check_word(name: str, value: object, known: Collection[str]) -> None:
    """Refuse a value that is none of the known words.

    Raises
    ------
    OptionError
        Naming the option, its value, the known words and the nearest of them.
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
    except TypeError:  # numpy's arrays without dimensions
        raise WorkloadError([Flaw(name, "", shown(value), "must be a sequence")]) from None
