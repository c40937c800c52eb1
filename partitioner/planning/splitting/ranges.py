"""The ranges of the options of operation splitting."""

from __future__ import annotations

from partitioner.base.errors import OptionError, shown
from partitioner.workload.device_validation import LARGEST

MOST_PARTS = 256


def check_ranges(
    split_time: object,
    concatenate_time: object,
    gradient_cost: object,
    time_limit: object,
    largest_split: object,
    data_parallel: object,
    reserve_memory: object,
) -> None:
    """Check that the options of :func:`partitioner.split_operations` are in their ranges.

    Raises
    ------
    OptionError
        If one is out of its range.
    """
    amount, least = (
        f"a number from 0 to {LARGEST:g}",
        f"an integer of at least 2 and at most {MOST_PARTS:,}, or None",
    )
    rules = (
        ("split_time", split_time, amount, _is_amount(split_time)),
        ("concatenate_time", concatenate_time, amount, _is_amount(concatenate_time)),
        ("gradient_cost", gradient_cost, amount, gradient_cost is None or _is_amount(gradient_cost)),
        ("time_limit", time_limit, f"{amount}, or None", time_limit is None or _is_amount(time_limit)),
        ("largest_split", largest_split, least, largest_split is None or _is_split(largest_split)),
        (
            "data_parallel",
            data_parallel,
            "True, False or None",
            data_parallel is None or isinstance(data_parallel, bool),
        ),
        ("reserve_memory", reserve_memory, "True or False", isinstance(reserve_memory, bool)),
    )
    for name, value, rule, holds in rules:
        if not holds:
            raise OptionError(f"{name} = {shown(value)}: must be {rule}")


def _is_amount(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LARGEST


def _is_split(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 2 <= value <= MOST_PARTS
