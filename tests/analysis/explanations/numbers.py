"""The numbers in a sentence, and whether they are the rounded values of others."""

from __future__ import annotations

import re
from collections.abc import Sequence

UNITS = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
NAMES = re.compile(r"'[^']*'|(?<=nodes )\([^)]*\)")
NUMBER = re.compile(r"(?<![\w/'.-])(\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?)(?:([kMGT]?)B\b|(%))?")


def numbers_in(sentence: str) -> list[tuple[float, float]]:
    """Every number of a sentence outside of names, with half a unit of its last digit."""
    found = []
    for digits, unit, percent in NUMBER.findall(NAMES.sub("", sentence)):
        scale = 0.01 if percent else UNITS[unit]
        mantissa, _, exponent = digits.replace(",", "").partition("e")
        last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
        found.append((float(digits.replace(",", "")) * scale, 0.5 * last * scale))
    return found


def check_numbers(sentence: str, expected: Sequence[float]) -> None:
    """Refuse a sentence whose numbers are not these, each rounded to the digits shown."""
    found = numbers_in(sentence)
    assert len(found) == len(expected), (sentence, found, expected)
    for (value, half), wanted in zip(found, expected, strict=True):
        assert abs(value - wanted) <= half + 1e-9 * abs(wanted), (sentence, value, wanted)
