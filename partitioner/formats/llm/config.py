"""The fields of a model's config, checked one by one."""

from __future__ import annotations

from typing import Any

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.formats.record import Record, RuleBrokenError, amount, flag, listing, whole

MOST = 10**9


class Config:
    """A config whose first field that breaks a rule raises an error.

    Parameters
    ----------
    data
        The parsed JSON object.
    source
        The file's name, for messages.
    """

    def __init__(self, data: Any, source: str) -> None:
        flaws: list[Flaw] = []
        self._record = Record(data, "file", flaws)
        self._source = source
        self.data = self._record.data
        self._check()

    def count(self, field: str) -> int:
        """Return a field that must be there, a whole number of at least 1."""
        found: int = self._taken(field, _count, 1, required=True)
        return found

    def number(self, field: str, default: int) -> int:
        """Return a whole number, the default if the field is left out or null.

        It must be at least 0, or at least 1 if the default is.
        """
        convert = _count if default else _natural
        return default if self.data.get(field) is None else self._taken(field, convert, default)

    def optional(self, field: str) -> int | None:
        """Return a whole number of at least 1; None if the field is left out or null."""
        return None if self.data.get(field) is None else self.count(field)

    def first(self, *fields: str) -> int:
        """Return the first of several fields that is there."""
        return self.count(next((field for field in fields if self.data.get(field) is not None), fields[0]))

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false; the default if the field is left out or null."""
        return default if self.data.get(field) is None else self._taken(field, flag, default)

    def drops(self, field: str, default: float) -> bool:
        """Whether a probability with which numbers are dropped is above 0."""
        found = default if self.data.get(field) is None else self._taken(field, amount, default)
        return found > 0

    def numbers(self, field: str) -> list[int]:
        """Return a list of whole numbers; empty if the field is left out or null."""
        return [] if self.data.get(field) is None else self._taken(field, _naturals, [])

    def part(self, field: str) -> Config:
        """Return the config in a field, an object."""
        return Config(self.data.get(field), f"{self._source}: {field}")

    def share(self, field: str, parts: str) -> int:
        """Return one field divided by another one, which must divide it."""
        total, count = self.count(field), self.count(parts)
        if total % count:
            self.refuse(field, total, f"must be a multiple of {parts} ({count})")
        return total // count

    def at_most(self, field: str, value: int, most: int) -> int:
        """Return the value of a field, which must be at most `most`."""
        if value > most:
            self.refuse(field, value, f"must be at most {most}")
        return value

    def refuse(self, field: str, value: object, rule: str) -> None:
        """Raise the error for a field that breaks a rule."""
        self._record.note(field, shown(value), rule)
        self._check()

    def _taken(self, field: str, convert: Any, default: Any, required: bool = False) -> Any:
        found = self._record.take(field, convert, default, required)
        self._check()
        return found

    def _check(self) -> None:
        if self._record.flaws:
            raise WorkloadError(self._record.flaws, self._source)


def _natural(value: Any) -> int:
    if not 0 <= whole(value) <= MOST:
        raise RuleBrokenError(f"must be a whole number from 0 to {MOST:,}")
    return whole(value)


def _count(value: Any) -> int:
    if not 1 <= whole(value) <= MOST:
        raise RuleBrokenError(f"must be a whole number from 1 to {MOST:,}")
    return whole(value)


def _naturals(value: Any) -> list[int]:
    return [_natural(item) for item in listing(value)]
