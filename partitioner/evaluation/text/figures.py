"""Numbers as short text."""

from __future__ import annotations

from partitioner.base.units import MS_PER_SECOND
from partitioner.workload.extras import TIME_UNITS

FAR = 0.1  # above this gap the factor between value and bound is shown instead of the gap


def figure(value: float) -> str:
    """Return a time in at most seven characters."""
    if value == 0 or 1 <= value < 999.95:
        return f"{value:.4g}"
    if 1e-3 <= value < 1:
        return f"{value:.3g}"
    return f"{value:.0f}" if 1 <= value < 9_999_999.5 else f"{value:.1e}"


BINARY_UNITS = {40: "TiB", 30: "GiB", 20: "MiB", 10: "KiB"}
SHORT = 10_000  # a number below it is short


def amount(size: float) -> str:
    """Return a size in at most six characters, for sizes below 1000 of the largest unit (T)."""
    for unit in ("", "k", "M", "G", "T"):
        if size < 999.5 or unit == "T":
            return f"{size:.3g}{unit}"
        size /= 1000
    raise AssertionError


def given_amount(size: float) -> str:
    """Return a size in the units in which it is a short number: ``16G``, ``16GiB``; else rounded.

    Examples
    --------
    >>> given_amount(16e9), given_amount(16 * 2.0**30), given_amount(12345678901.0)
    ('16G', '16GiB', '12.3G')
    """
    if float(f"{size:.3g}") != size:
        for power, unit in BINARY_UNITS.items():
            if size % 2**power == 0 and size < SHORT * 2**power:
                return f"{size / 2**power:.0f}{unit}"
    return amount(size)


def samples_per_second(time: float, unit: str) -> str:
    """Return how many samples end in a second, after a comma; nothing if the unit of time is not known.

    Examples
    --------
    >>> samples_per_second(236.4, "ms")
    ', 4.23 samples/s'
    """
    if unit not in TIME_UNITS or time <= 0:
        return ""
    return f", {MS_PER_SECOND / (time * TIME_UNITS[unit]):.3g} samples/s"


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
    if relative_gap(value, bound) <= FAR:
        return f"within {relative_gap(value, bound):.2%} of the {best}"
    return f"at most {value / bound:.3g} x the lower bound"


def shortfall(value: float, bound: float) -> str:
    """Return how far a number is at most from the largest one possible, as a phrase.

    Examples
    --------
    >>> shortfall(137.0, 137.0), shortfall(95.0, 100.0), shortfall(20.0, 100.0)
    ('optimal', 'within 5.00% of the optimum', 'at least 0.2 x the upper bound')
    """
    if value >= bound:
        return "optimal"
    if relative_gap(value, bound) <= FAR:
        return f"within {relative_gap(value, bound):.2%} of the optimum"
    return f"at least {value / bound:.3g} x the upper bound"


def gap_cell(value: float, bound: float) -> str:
    """Return how far a value is at most from the best one, for a table: ``2.00%``; ``-`` if nothing is known.

    Examples
    --------
    >>> gap_cell(10.0, 9.8), gap_cell(153.0, 10.0), gap_cell(3.0, 0.0)
    ('2.00%', '93.46%', '-')
    """
    return "-" if bound <= 0 < value else f"{relative_gap(value, bound):.2%}"


def relative_gap(value: float, bound: float) -> float:
    """Return the distance of a value from its bound, as a fraction of the larger of the two."""
    larger = max(value, bound)
    return abs(value - bound) / larger if larger > 0 else 0.0
