"""The value of a plan for samples in flight as text."""

from __future__ import annotations

from collections.abc import Mapping

from partitioner.evaluation.text.figures import figure, samples_per_second

MAXIMISED: Mapping[str, bool] = {"capacity": True}  # objectives whose larger values are better
TIME_BOUND = "time_bound"  # key of `statistics`: no plan with as many samples takes less time for each
ROUNDING = 1 - 1e-9


def served_lines(value: float, bound: float, time: float, least: float | None, unit: str) -> str:
    """Return lines with the number of samples in flight and its proof, and the time per sample and its proof.

    Parameters
    ----------
    value, bound
        The samples in flight, and their upper bound.
    time, least
        The time per sample, and its lower bound for plans with that many samples; None if there is none.
    unit
        The unit of the times; may be empty.

    Examples
    --------
    >>> print(served_lines(1370.0, 1370.0, 12.5, 12.5, "ms"))
    1,370 samples in flight, optimal
    12.5 ms per sample, 80 samples/s, the least time at that capacity
    """
    proven = least is not None and least >= time * ROUNDING
    shown = f"{figure(time)} {unit}".rstrip() + f" per sample{samples_per_second(time, unit)}"
    words = ", the least time at that capacity" if proven else ""
    near = "optimal" if value >= bound else f"at most {bound:,.0f} are possible"
    return f"{value:,.0f} samples in flight, {near}\n{shown}{words}"
