"""Cells of the usual sorts, and remarks on workloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from paper_tables.catalogue import Entry
from paper_tables.model import Cell
from paper_tables.verdict import CENT, last_digit, must_agree, smaller_is_better

COUNT, PERCENT, RATIO, SECONDS = ",d", ".2%", ".3f", ".1f"


class Named(Protocol):
    """A measurement of a published workload."""

    entry: Entry


def note(text: str, measurements: Sequence[Named]) -> list[str]:
    """A remark on some workloads, if there are any."""
    names = ", ".join(m.entry.name for m in measurements)
    return [f"{names}: {text}."] if names else []


def minimum(ours: float | None, published: float | None, unit: float = CENT) -> Cell:
    """A value that is to be small; `unit` is what its last printed digit is worth."""
    return Cell(ours, published, smaller_is_better(ours, published, unit))


def fixed(ours: float | None, published: float | None) -> Cell:
    """A value that leaves no choice."""
    return Cell(ours, published, must_agree(ours, published))


def measured(ours: float, published: float | None) -> Cell:
    """A value of six significant digits."""
    unit = last_digit(published) if published else 1.0
    return Cell(ours, published, must_agree(ours, published, unit))


def count(ours: int | None, published: int | None) -> Cell:
    """A whole number that leaves no choice."""
    return Cell(ours, published, must_agree(ours, published, unit=1), COUNT)


def ratio(base: float | None, value: float | None) -> float | None:
    """The first in relation to the second, None if one is unknown."""
    return None if base is None or value is None else base / value


def excess(value: float | None, optimum: float | None) -> float | None:
    """By what fraction a value exceeds an optimum, None if one is unknown."""
    return None if value is None or optimum is None else value / optimum - 1
