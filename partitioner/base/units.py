"""Factors between units, each defined once, and numbers of bytes written as texts, such as ``16GiB``."""

from __future__ import annotations

import re

from partitioner.base.errors import OptionError, shown

MS_PER_SECOND = 1e3


UNITS: dict[str, float] = {"": 1.0, "b": 1.0} | {
    f"{letter}{middle}B".lower(): float(base**power)
    for middle, base in (("", 1000), ("i", 1024))
    for power, letter in enumerate("KMGTP", 1)
}
PATTERN = re.compile(r"\s*([0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*")
RULE = "must be a number of bytes of at least 0, such as 16e9, 16GB (1000^3) or 16GiB (1024^3)"


def byte_count(text: str) -> float:
    """Return the number of bytes that a text says, with a unit or without one.

    Raises
    ------
    OptionError
        If the text is not a number, or its unit is unknown.

    Examples
    --------
    >>> byte_count("16GiB"), byte_count("1.5 kB"), byte_count("2e9")
    (17179869184.0, 1500.0, 2000000000.0)
    """
    found = PATTERN.fullmatch(text)
    if found is None or found[2].lower() not in UNITS or float(found[1]) == float("inf"):
        raise OptionError(f"{shown(text)}: {RULE}")
    return float(found[1]) * UNITS[found[2].lower()]
