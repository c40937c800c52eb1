"""Registries of records by name, of this package, of calls or of distributions; functions by their places."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from partitioner.base.errors import OptionError, one_of, shown

Entry = TypeVar("Entry")


@dataclass(frozen=True)
class BrokenEntry:
    """A refused entry point.

    Parameters
    ----------
    word, name
        What the entry point should be, such as ``"method"``, and its name.
    distribution
        The installed distribution that offers it.
    reason
        Why the entry point is refused, in one line.
    """

    word: str
    name: str
    distribution: str
    reason: str

    def __str__(self) -> str:
        return f"{self.word} {self.name} of distribution {self.distribution} is refused: {self.reason}"


class Registry(Mapping[str, Entry], Generic[Entry]):
    """A mapping from names to the entries of one type.

    An entry point is loaded once: when its name or all names are looked up. A broken entry point is left
    out of the mapping and does not affect the other entries.

    Parameters
    ----------
    word
        What an entry is called in messages, such as ``"method"``.
    group
        The group of entry points, such as ``"partitioner.methods"``.
    kind
        The type of the entries; it has an attribute `name`.
    own
        The entries that this package provides.
    reserved
        Names that no entry may have.

    Examples
    --------
    >>> from fractions import Fraction
    >>> registry = Registry("number", "partitioner.doctest", Fraction)
    >>> list(registry), "half" in registry
    ([], False)
    """

    def __init__(
        self,
        word: str,
        group: str,
        kind: type[Entry],
        own: Iterable[Entry] = (),
        reserved: tuple[str, ...] = (),
    ) -> None:
        self.word, self.group = word, group
        self.own: dict[str, Entry] = {_name_of(entry): entry for entry in own}
        self._kind, self._reserved = kind, reserved
        self._known = dict(self.own)
        self._points: dict[str, EntryPoint] | None = None  # entry points that are not loaded yet
        self._broken: list[BrokenEntry] = []
        self._lock = threading.RLock()

    def __getitem__(self, name: str) -> Entry:
        with self._lock:
            if name not in self._known:
                self._load(name)
            return self._known[name]

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            self._load_all()
            return iter(list(self._known))

    def __len__(self) -> int:
        with self._lock:
            self._load_all()
            return len(self._known)

    def broken(self) -> tuple[BrokenEntry, ...]:
        """Return the refused entry points."""
        with self._lock:
            self._load_all()
            return tuple(self._broken)

    def why_broken(self, name: object) -> str:
        """Return why the entry point of that name is refused; empty if none of that name is refused."""
        if not isinstance(name, str) or name in self._known:
            return ""
        return next((str(entry) for entry in self.broken() if entry.name == name), "")

    def check(self, option: str, name: object, *further: str) -> None:
        """Raise if a name is neither that of an entry nor one of `further`.

        Raises
        ------
        OptionError
            Naming the option, its value and the known names, or why the entry point of that name is refused.
        """
        if isinstance(name, str) and (name in further or name in self):
            return
        reason = self.why_broken(name)
        if reason:
            raise OptionError(f"{option} = {shown(name)}: {reason}")
        raise OptionError(f"{option} = {shown(name)}: must be {one_of(name, (*further, *self))}")

    def add(self, entry: Entry) -> None:
        """Register an entry in this process.

        Raises
        ------
        OptionError
            If the entry is of another type, or its name is not a text, is empty, reserved or used already.
        """
        with self._lock:
            reason = self._reason_against(entry)
            if reason:
                name = getattr(entry, "name", entry)
                raise OptionError(f"{self.word} {shown(name)} is refused: {reason}")
            self._known[_name_of(entry)] = entry

    def remove(self, entry: Entry) -> None:
        """Remove an entry that :meth:`add` registered.

        Raises
        ------
        OptionError
            If that entry is not registered, or this package provides it.
        """
        name = _name_of(entry)
        with self._lock:
            if name in self.own or self._known.get(name) is not entry:
                raise OptionError(f"{self.word} {shown(name)} is not registered by a call")
            del self._known[name]

    def takes(self, entry: object) -> bool:
        """Whether an object has the type of the entries."""
        return isinstance(entry, self._kind)

    def _reason_against(self, entry: object) -> str:
        if not self.takes(entry):
            return f"must be a {self._kind.__name__}, not of type {type(entry).__name__}"
        name = getattr(entry, "name", None)
        if not isinstance(name, str) or not name or name in self._reserved:
            return f"name = {shown(name)}: must be a text that is not empty and not reserved"
        return f"another {self.word} has that name" if name in self._known else ""

    def _discover(self) -> dict[str, EntryPoint]:
        """Return the entry points that are not loaded yet; of two with one name the first counts."""
        if self._points is None:
            self._points = {}
            for point in dict.fromkeys(entry_points(group=self.group)):
                if point.name in self._known or point.name in self._points:
                    self._refuse(point, f"another {self.word} has that name")
                else:
                    self._points[point.name] = point
        return self._points

    def _load_all(self) -> None:
        for name in list(self._discover()):
            self._load(name)

    def _load(self, name: str) -> None:
        """Load the entry point of that name, if there is one."""
        point = self._discover().pop(name, None)
        if point is None:
            return
        try:
            entry: Any = point.load()
        except (Exception, SystemExit) as error:  # whatever the module of another distribution raises
            self._refuse(point, f"{type(error).__name__}: {error}")
            return
        reason = self._reason_against(entry)
        if not reason and _name_of(entry) != name:
            reason = f"name = {shown(_name_of(entry))}: must be the name of the entry point"
        if reason:
            self._refuse(point, reason)
        else:
            self._known[name] = entry

    def _refuse(self, point: EntryPoint, reason: str) -> None:
        source = "without a name" if point.dist is None else point.dist.name
        line = " ".join(reason.split())
        self._broken.append(BrokenEntry(self.word, point.name, source, line))


def _name_of(entry: Any) -> str:
    name: str = entry.name
    return name


def imported(place: str) -> Any:
    """Return the function of a text ``"module:function"``; import its module if need be.

    Examples
    --------
    >>> imported("math:gcd")(12, 18)
    6
    """
    module, function = place.split(":")
    return getattr(import_module(module), function)
