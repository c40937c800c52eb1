"""The rules for values of options: each has a text, a check and a type for the command line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partitioner.base.argument_types import MANY, is_count, is_one_of
from partitioner.base.errors import OptionError, nearest, shown
from partitioner.base.registry import Registry

LONGEST = 10**9  # seconds, and the largest fraction


@dataclass(frozen=True)
class Rule:
    """A rule for the values of an option.

    Parameters
    ----------
    words
        The same in words, to follow "must be".
    holds
        Whether a value may be; by default any, which is for values that are checked where they are read.
    kind
        The type that a command line reads: int, float, bool or str. With object, the option cannot be given
        on a command line.
    names
        The texts among which the value is.
    registry
        The records among whose names the value is, in addition to `names`.
    optional
        Whether the value may be None in place of such a name.

    Examples
    --------
    >>> count(9).check("orders", 0)
    Traceback (most recent call last):
    ...
    partitioner.base.errors.OptionError: orders = 0: must be an integer of at least 1 and at most 9
    """

    words: str
    holds: Callable[[Any], bool] = lambda _: True
    kind: type = object
    names: tuple[str, ...] = ()
    registry: Registry[Any] | None = None
    optional: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse a value of the option of that name.

        Raises
        ------
        OptionError
            Naming the option, its value, what it may be and, of names, the nearest.
        """
        if value is None and self.optional:
            return
        if self.registry is not None:
            self.registry.check(name, value, *self.names)
        elif not self.holds(value):
            raise OptionError(f"{name} = {shown(value)}: must be {self.words}{nearest(value, self.names)}")


SWITCH = Rule("True or False", lambda value: isinstance(value, bool), bool)
TEXT = Rule("a text", lambda value: isinstance(value, str), str)


def count(most: int = MANY, optional: bool = False) -> Rule:
    """Return the rule for a count, an integer from 1; with `optional`, it may be None."""
    words = f"an integer of at least 1 and at most {most:,}"
    return Rule(words, lambda v: (optional and v is None) or is_count(v, 1, most), int)


def number(words: str, holds: Callable[[Any], bool], optional: bool = False) -> Rule:
    """Return the rule for an integer or a float within limits."""
    return Rule(words, lambda v: (optional and v is None) or (_is_number(v) and holds(v)), float)


def name_among(names: tuple[str, ...], words: str = "", optional: bool = False) -> Rule:
    """Return the rule for a value that must be one of some texts."""
    known = (*names, None) if optional else names
    return Rule(
        words or f"one of {', '.join(names)}",
        lambda v: (optional or v is not None) and is_one_of(v, known),
        str,
        names,
    )


def name_in(registry: Registry[Any], words: str, *further: str, optional: bool = False) -> Rule:
    """Return the rule for the name of a registered record, or one of `further`; with `optional`, or None."""
    return Rule(words, kind=str, names=further, registry=registry, optional=optional)


def instance(kind: type, words: str = "") -> Rule:
    """Return the rule for an object of a type."""
    return Rule(words or f"a {kind.__name__}", lambda value: isinstance(value, kind))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
