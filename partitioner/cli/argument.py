"""An argument of a command: its name, its help, and its keywords for argparse."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from partitioner.base.errors import OptionError
from partitioner.base.units import MS_PER_SECOND, byte_count
from partitioner.workload.extras import TIME_UNITS

T = TypeVar("T")

COMMON = (  # options that the short help of a command with very many has
    *("--objective", "--method", "--methods", "--split", "--time-limit", "--max-time-per-sample"),
    *("--accelerators", "--memory", "--cpus", "--devices", "--pool", "--constraints", "--replicas"),
    *("--schedule", "--microbatches", "--granularity", "--processes", "--plans", "--picture", "--csv"),
    *("--output", "--format"),
)


@dataclass(frozen=True)
class Argument:
    """An argument of a command.

    Parameters
    ----------
    name
        As it is typed, such as ``"--time-limit"``.
    help
        What it does, in one clause that ends with its default in parentheses.
    keywords
        Further arguments of ``argparse.ArgumentParser.add_argument``.
    """

    name: str
    help: str
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Section:
    """A group of arguments with a title in the help of a command."""

    title: str
    arguments: tuple[Argument, ...]


def value(name: str, help: str, **keywords: Any) -> Argument:  # noqa: A002
    """Return an argument that takes a value."""
    return Argument(name, help, keywords)


def flag(name: str, help: str, *, stands_for: bool = True, **keywords: Any) -> Argument:  # noqa: A002
    """Return an argument without a value: None if it is not given, else `stands_for`."""
    return Argument(name, help, {"action": "store_const", "const": stands_for, **keywords})


def size(text: str) -> float:
    """Return the number that a text is, or the number of bytes that it says, as argparse's `type`."""
    with suppress(ValueError):
        return float(text)
    try:
        return byte_count(text)
    except OptionError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def rate(text: str) -> float:
    """Return the bytes per second that a text says, such as ``25GB/s``, as argparse's `type`.

    Examples
    --------
    >>> rate("25GB/s"), rate("2e9")
    (25000000000.0, 2000000000.0)
    """
    return size(text.strip().removesuffix("/s"))


def milliseconds(text: str) -> float:
    """Return the milliseconds that a text says, such as ``600ms`` or ``1.5s``, as argparse's `type`.

    Examples
    --------
    >>> milliseconds("600ms"), milliseconds("1.5s"), milliseconds("50")
    (600.0, 1500.0, 50.0)
    """
    return _time(text, "ms")


def seconds(text: str) -> float:
    """Return the seconds that a text says, such as ``5us`` or ``1e-5``, as argparse's `type`.

    Examples
    --------
    >>> seconds("5us"), seconds("0.25")
    (5e-06, 0.25)
    """
    return _time(text, "s") / MS_PER_SECOND


def _time(text: str, usual: str) -> float:
    plain = text.strip()
    unit = next((unit for unit in ("ms", "us", "s") if plain.endswith(unit)), "")
    try:
        return float(plain.removesuffix(unit)) * TIME_UNITS[unit or usual]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a time, such as 600ms or 1.5s") from None


def names(text: str) -> list[str]:
    """Return the names in a text that commas separate, as argparse's `type`."""
    return [word.strip() for word in text.split(",") if word.strip()]


def name_or_names(text: str) -> str | list[str]:
    """Return a name, or the names that commas separate if there are several, as argparse's `type`.

    Examples
    --------
    >>> name_or_names("H100"), name_or_names("RTX 4090, A100-40")
    ('H100', ['RTX 4090', 'A100-40'])
    """
    found = names(text)
    return found if len(found) > 1 else text


def counts(text: str) -> list[int]:
    """Return the whole numbers in a text that commas separate, as argparse's `type`."""
    try:
        return [_decimal(word) for word in names(text)]
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: must be whole numbers, such as 2,4,8") from error


def sizes(text: str) -> list[float]:
    """Return the numbers of bytes in a text that commas separate, as argparse's `type`."""
    return [size(word) for word in names(text)]


def dimensions(text: str) -> dict[str, int]:
    """Return sizes by name from a text such as ``batch=8,sequence=128``, as argparse's `type`."""
    return _by_name(text, _decimal, "a size, such as batch=8")


def weights(text: str) -> dict[str, float]:
    """Return weights by name from a text such as ``prefill=1,decode=256``, as argparse's `type`."""
    return _by_name(text, float, "a number, such as decode=256")


def measured(text: str) -> float | dict[str, float]:
    """Return seconds, or seconds by the names of layers, as argparse's `type`.

    Examples
    --------
    >>> measured("1.5"), measured("model.layers.0=0.012")
    (1.5, {'model.layers.0': 0.012})
    """
    return (
        _by_name(text, float, "a number of seconds, such as model.layers.0=0.012")
        if "=" in text
        else float(text)
    )


def layouts(text: str) -> list[dict[str, Any]]:
    """Return the layouts in a text, semicolons between them, as argparse's `type`.

    Examples
    --------
    >>> layouts("tensor=4,sequence_parallel; recompute=full")
    [{'tensor': 4, 'sequence_parallel': True}, {'recompute': 'full'}]
    """
    return [dict(map(_setting, one.split(","))) for one in text.split(";") if one.strip()]


def _setting(text: str) -> tuple[str, Any]:
    """Return an option of a layout and its value; an option without a value is a flag."""
    name, given, number = (part.strip() for part in text.partition("="))
    if not name or (given and not number):
        raise argparse.ArgumentTypeError(f"{text!r}: must be an option and its value, such as tensor=4")
    return name.replace("-", "_"), int(number) if number.isdecimal() else number if given else True


def _by_name(text: str, read: Callable[[str], T], rule: str) -> dict[str, T]:
    found: dict[str, T] = {}
    for part in text.split(","):
        name, _, number = part.rpartition("=")
        try:
            found[name.strip()] = read(number.strip())
        except ValueError:
            name = ""
        if not name.strip():
            raise argparse.ArgumentTypeError(f"{part!r}: must be a name and {rule}")
    return found


def _decimal(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(text)
    return int(text)


def pool(text: str) -> dict[str, tuple[int, float | None]]:
    """Return numbers and memory by kind from a text such as ``GH-96=2:96GB,V100-16=3``, as argparse's `type`.

    Examples
    --------
    >>> pool("GH-96=2:96GB,V100-16=3")
    {'GH-96': (2, 96000000000.0), 'V100-16': (3, None)}
    """
    found: dict[str, tuple[int, float | None]] = {}
    for part in text.split(","):
        name, _, given = part.strip().rpartition("=")
        number, _, memory = given.partition(":")
        if not name or not number.isdecimal() or name in found:
            rule = "must be a kind and a number, such as GH-96=2 or GH-96=2:96GB, and no kind twice"
            raise argparse.ArgumentTypeError(f"{part!r}: {rule}")
        found[name] = int(number), size(memory) if memory else None
    return found


def prices(text: str) -> dict[str, float]:
    """Return numbers by kind from a text such as ``H100=3,L40S=0.9``, as argparse's `type`.

    Examples
    --------
    >>> prices("H100=3,RTX 4090=0.5")
    {'H100': 3.0, 'RTX 4090': 0.5}
    """
    found: dict[str, float] = {}
    for part in text.split(","):
        name, _, given = part.strip().rpartition("=")
        try:
            found[name] = float(given)
        except ValueError:
            name = ""
        if not name:
            raise argparse.ArgumentTypeError(f"{part!r}: must be a kind and a number, such as H100=3")
    return found


def add_sections(parser: argparse.ArgumentParser, sections: Sequence[Section], shown: bool = True) -> None:
    """Add the arguments to a parser; those of a section without a title go where argparse puts them.

    If not `shown`, the help has positional arguments and :data:`COMMON` options alone.
    """
    for section in sections:
        group = parser.add_argument_group(section.title) if section.title else parser
        for one in section.arguments:
            brief = shown or one.name in COMMON or not one.name.startswith("-")
            group.add_argument(one.name, help=one.help if brief else argparse.SUPPRESS, **one.keywords)
