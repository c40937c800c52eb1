"""A text with a unit is the number of bytes that the unit stands for; anything else is refused."""

from __future__ import annotations

import pytest

from partitioner import OptionError
from partitioner.base.units import byte_count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0), ("12", 12), (" 1.5 ", 1.5), ("16e9", 16e9), ("1E+3", 1000), ("7B", 7), ("2kB", 2000),
        ("2KB", 2000), ("2KiB", 2048), ("3 MiB", 3 * 2**20), ("3MB", 3e6), ("16GiB", 16 * 2**30),
        ("1TB", 1e12), ("0.5PiB", 2**49),
    ],
)  # fmt: skip
def test_units(text: str, expected: float) -> None:
    assert byte_count(text) == expected


@pytest.mark.parametrize(
    "text", ["", "GiB", "-1", "1 2", "1XB", "1e999", "nan", "inf", "0x10", "1\N{SUPERSCRIPT TWO}"]
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="must be a number of bytes of at least 0, such as 16e9"):
        byte_count(text)
