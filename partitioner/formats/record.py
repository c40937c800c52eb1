"""Typed access to the fields of a JSON object; all flaws are collected before an error is raised."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from partitioner.base.errors import Flaw, plain_name, shown

T = TypeVar("T")
D = TypeVar("D")
MISSING: Any = object()


class RuleBrokenError(Exception):
    """The error of a converter whose value breaks a rule; its text is the rule."""


class Record:
    """A JSON object at a named place in a file.

    Parameters
    ----------
    data
        The parsed object; any other value adds a flaw and is treated as an empty object.
    where
        The name of the place, for messages.
    flaws
        The list that flaws are added to.
    """

    def __init__(self, data: Any, where: str, flaws: list[Flaw]) -> None:
        self.where = where
        self.flaws = flaws
        self.broken = not isinstance(data, dict)
        self.data: dict[str, Any] = {} if self.broken else data
        if self.broken:
            self.note("", shown(data), "must be a JSON object")

    def note(self, field: str, value: str, rule: str) -> None:
        """Add a flaw of a field of this object."""
        self.flaws.append(Flaw(self.where, field, value, rule))

    def take(self, field: str, convert: Callable[[Any], T], default: D, required: bool = True) -> T | D:
        """Return the converted field; `default` if it is missing or breaks a rule, which adds a flaw.

        A missing field adds a flaw only if it is required.
        """
        value = self.data.get(field, MISSING)
        if value is MISSING:
            if required and not self.broken:
                self.note(field, "", f"is missing{self._advice(field)}")
            return default
        try:
            return convert(value)
        except RuleBrokenError as broken:
            self.note(field, shown(value), str(broken))
            return default

    def others(self, known: Sequence[str]) -> dict[str, Any]:
        """Return the fields that are not `known`; a different spelling of a known name adds a flaw."""
        plain = {plain_name(name): name for name in known}
        for field in self.data:
            meant = plain.get(plain_name(field))
            if field not in known and meant is not None:
                self.note(field, "", f"is not a field; did you mean {meant}?")
        return {field: value for field, value in self.data.items() if field not in known}

    def _advice(self, field: str) -> str:
        near = [name for name in self.data if plain_name(name) == plain_name(field)]
        return f" (found {near[0]}; upper and lower case matter)" if near else ""


def number(value: Any) -> float:
    """Return a JSON number as a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RuleBrokenError("must be a number")
    try:
        return float(value)
    except OverflowError:
        raise RuleBrokenError("must be a finite number of at least 0") from None


def amount(value: Any) -> float:
    """Return a JSON number as a float, which must be finite and at least 0."""
    if not 0 <= number(value) < math.inf:
        raise RuleBrokenError("must be a finite number of at least 0")
    return number(value)


def whole(value: Any) -> int:
    """Return a JSON number as an integer; it must not have a fraction."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        raise RuleBrokenError("must be a whole number")
    return int(value)


def flag(value: Any) -> bool:
    """Return a JSON value as a bool; it must be true or false, or 1 or 0."""
    if isinstance(value, bool | int | float) and value in (0, 1):
        return bool(value)
    raise RuleBrokenError("must be true or false, or 1 or 0")


def text(value: Any) -> str:
    """Return a JSON string, which must be writable as UTF-8."""
    if not isinstance(value, str):
        raise RuleBrokenError("must be a text")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RuleBrokenError("must be a text without lone surrogates") from None
    return value


def identifier(value: Any) -> int | str:
    """Return a node id, an integer or a string."""
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise RuleBrokenError("must be an integer or a text")
    if abs(value) >= 2**63:
        raise RuleBrokenError("must fit 64 bits")
    return value


def listing(value: Any) -> list[Any]:
    """Return a JSON array."""
    if not isinstance(value, list):
        raise RuleBrokenError("must be a list")
    return value


def filled(value: Any) -> list[Any]:
    """Return a JSON array, which must not be empty."""
    if not listing(value):
        raise RuleBrokenError("must not be empty")
    return listing(value)


def texts(value: Any) -> list[str]:
    """Return a JSON array of strings."""
    return [text(item) for item in listing(value)]


def mapping(value: Any) -> dict[str, Any]:
    """Return a JSON object."""
    if not isinstance(value, dict):
        raise RuleBrokenError("must be a JSON object")
    return value


def pair(value: Any) -> tuple[float, float]:
    """Return a JSON array of two numbers, which must be finite and at least 0."""
    if not isinstance(value, list) or len(value) != 2:
        raise RuleBrokenError("must be a list of two numbers")
    return amount(value[0]), amount(value[1])
