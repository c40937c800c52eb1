"""Numbers as short text."""

from __future__ import annotations

FAR = 0.1  # a gap above which a fraction of the value says little


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


def nearness(value: float, bound: float, best: str = "optimum") -> str:
    """Return how far a value may be from the optimum, as a clause about it.

    A fraction of the value up to :data:`FAR`; above that, how many times the lower bound it is at most.

    Examples
    --------
    >>> nearness(10.0, 9.8)
    'within 2.00% of the optimum'
    >>> nearness(153.0, 10.0)
    'at most 15.3 x the lower bound'
    >>> nearness(153.0, 0.0)
    'no lower bound above 0 is known'
    """
    if bound <= 0 < value:
        return "no lower bound above 0 is known"
    if _gap(value, bound) <= FAR:
        return f"within {_gap(value, bound):.2%} of the {best}"
    return f"at most {value / bound:.3g} x the lower bound"


def gap_cell(value: float, bound: float) -> str:
    """Return the same for a cell of a table: ``2.00%`` or ``15.3 x``; ``-`` without a bound above 0."""
    if bound <= 0 < value:
        return "-"
    if _gap(value, bound) <= FAR:
        return f"{_gap(value, bound):.2%}"
    return f"{value / bound:.3g} x" if value / bound < 999.5 else ">999 x"


def _gap(value: float, bound: float) -> float:
    return (value - bound) / value if value > 0 else 0.0
