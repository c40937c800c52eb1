"""The memory of an optimizer's state."""

from __future__ import annotations

from partitioner.base.errors import OptionError, shown
from partitioner.workload.device_validation import is_amount, number_rule


def optimizer_bytes_of(given: float | None, width: float) -> float:
    """Return the bytes that an optimizer keeps of a parameter of `width` bytes; by default those of Adam.

    Adam keeps two moments of four bytes each, and a copy of parameters that are narrower than that.

    Raises
    ------
    OptionError
        If `given` is neither None nor 0 nor a number from 1e-100 to 1e100.

    Examples
    --------
    >>> optimizer_bytes_of(None, 2), optimizer_bytes_of(None, 4)
    (12.0, 8.0)
    """
    if given is None:
        return 8.0 if width >= 4 else 12.0
    if not is_amount(given):
        raise OptionError(f"optimizer_bytes = {shown(given)}: {number_rule(given)}")
    return float(given)
