"""Numbers as short text."""

from __future__ import annotations

from partitioner.workload.extras import TIME_UNITS

FAR = 0.1  # above this gap the factor between value and bound is shown instead of the gap


def figure(value: float) -> str:
    """Return a time in at most seven characters."""
    if value == 0 or 1 <= value < 999.95:
        return f"{value:.4g}"
    if 1e-3 <= value < 1:
        return f"{value:.3g}"
    return f"{value:.0f}" if 1 <= value < 9_999_999.5 else f"{value:.1e}"


def amount(size: float) -> str:
    """Return a size in at most six characters, for sizes below 1000 of the largest unit (T)."""
    for unit in ("", "k", "M", "G", "T"):
        if size < 999.5 or unit == "T":
            return f"{size:.3g}{unit}"
        size /= 1000
    raise AssertionError


def samples_per_second(time: float, unit: str) -> str:
    """Return how many samples end in a second, after a comma; nothing if the unit of time is not known.

    Examples
    --------
    >>> samples_per_second(236.4, "ms")
    ', 4.23 samples/s'
    """
    if unit not in TIME_UNITS or time <= 0:
        return ""
    return f", {1e3 / (time * TIME_UNITS[unit]):.3g} samples/s"


def nearness(value: float, bound: float, best: str = "optimum") -> str:
    """Return how far a value is at most from the optimum, as a phrase.

    The phrase gives a fraction of the value up to :data:`FAR`, and a multiple of the lower bound above that.

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
    """Return how far a value is from the bound, for a table: ``2.00%``, ``15.3 x``; ``-`` if it is 0."""
    if bound <= 0 < value:
        return "-"
    if _gap(value, bound) <= FAR:
        return f"{_gap(value, bound):.2%}"
    return f"{value / bound:.3g} x" if value / bound < 999.5 else ">999 x"


def _gap(value: float, bound: float) -> float:
    return (value - bound) / value if value > 0 else 0.0
