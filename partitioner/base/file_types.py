"""The entry of a registry that reads or writes a file, chosen by the end of the file's name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from partitioner.base.errors import OptionError, shown


class Suffixed(Protocol):
    """An entry that reads or writes the files whose names end in one of its suffixes."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The suffixes, in lower case and with the leading dot."""
        ...


Entry = TypeVar("Entry", bound=Suffixed)


def entry_for(path: str | Path, entries: Mapping[str, Entry], taken: Collection[str]) -> Entry | None:
    """Return the first entry for a file; None if there is none, or if this package reserves the suffix.

    A reserved suffix (one of `taken`) loads no entry point.
    """
    name = Path(path).name.lower()
    if name.endswith(tuple(taken)):
        return None
    return next((entry for entry in entries.values() if name.endswith(entry.suffixes)), None)


def check_suffixes(what: str, suffixes: object, taken: Collection[str]) -> None:
    """Raise if the suffixes are not a tuple of valid suffixes, or this package reserves one of them.

    Raises
    ------
    OptionError
        Naming the entry (`what`), the suffixes and the rule.

    Examples
    --------
    >>> check_suffixes("reader 'dot'", (".dot", ".gv"), (".json",))
    >>> check_suffixes("dot", "a", (".b",))
    Traceback (most recent call last):
    ...
    partitioner.base.errors.OptionError: dot: suffixes = 'a': must be a tuple such as ('.abc',) without .b
    """
    sound = isinstance(suffixes, tuple) and suffixes and all(_is_suffix(each, taken) for each in suffixes)
    if not sound:
        rule = f"must be a tuple such as ('.abc',) without {', '.join(taken)}"
        raise OptionError(f"{what}: suffixes = {shown(suffixes)}: {rule}")


def _is_suffix(value: object, taken: Collection[str]) -> bool:
    text = value if isinstance(value, str) else ""
    return text.startswith(".") and len(text) > 1 and text == text.lower() and not text.endswith(tuple(taken))
