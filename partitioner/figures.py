"""Numbers as short text."""

from __future__ import annotations


def figure(value: float) -> str:
    """A time in at most seven characters."""
    if value == 0 or 1 <= value < 999.95:
        return f"{value:.4g}"
    if 1e-3 <= value < 1:
        return f"{value:.3g}"
    return f"{value:.0f}" if 1 <= value < 9_999_999.5 else f"{value:.1e}"


def amount(size: float) -> str:
    """A size in at most six characters, up to 999 of the largest unit."""
    for unit in ("", "k", "M", "G", "T"):
        if size < 999.5 or unit == "T":
            return f"{size:.3g}{unit}"
        size /= 1000
    raise AssertionError
