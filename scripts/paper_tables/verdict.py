"""Is our value the published one, to the precision it was printed with?"""

from __future__ import annotations

import math

EQUAL, BETTER, WORSE, DIFFERENT, NONE = "=", "better", "worse", "differs", "-"
GOOD = (EQUAL, BETTER, NONE)
CENT = 0.01
ROUNDING = 1e-9


def is_printed(ours: float, published: float, unit: float) -> bool:
    """Could `ours` be printed as `published`, rounded or cut off after the digit worth `unit`?

    The paper does both: 130.04 appears as 130.03 and 159.4375 as 159.43.

    Examples
    --------
    >>> is_printed(159.4375, 159.43, 0.01), is_printed(27.9186, 27.92, 0.01), is_printed(27.91, 27.92, 0.01)
    (True, True, False)
    """
    difference = (ours - published) / unit
    return -0.5 - ROUNDING <= difference < 1 - ROUNDING


def last_digit(value: float, digits: int = 6) -> float:
    """What the last of `digits` significant digits of a value is worth.

    Examples
    --------
    >>> last_digit(49.3526)
    0.0001
    """
    return float(10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)) if value else ROUNDING


def smaller_is_better(ours: float | None, published: float | None, unit: float = CENT) -> str:
    """The verdict on a value that is to be small."""
    if ours is None or published is None:
        return NONE
    if is_printed(ours, published, unit):
        return EQUAL
    return BETTER if ours < published else WORSE


def must_agree(ours: float | None, published: float | None, unit: float = CENT) -> str:
    """The verdict on a value that leaves no choice."""
    if ours is None or published is None:
        return NONE
    return EQUAL if is_printed(ours, published, unit) else DIFFERENT


def against_program(ours: float, printed: float | None, tolerance: float = 1e-6) -> str:
    """The verdict against what the paper's own program computes, to a relative tolerance."""
    if printed is None:
        return NONE
    if math.isclose(ours, printed, rel_tol=tolerance):
        return EQUAL
    return BETTER if ours < printed else WORSE
