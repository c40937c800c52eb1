"""Improvement of parts by local search within a limit on time or on moves."""

from __future__ import annotations

from collections.abc import Sequence

from partitioner.base.clock import Clock
from partitioner.methods.local_search.layouts import PartLayout
from partitioner.methods.local_search.rounds import LocalSearch
from partitioner.methods.method import Part, Settings
from partitioner.problem.variants import PartsProblem


def improve(
    problem: PartsProblem,
    start: Sequence[Part] | None,
    settings: Settings,
    seconds: float,
    seed: int = 0,
    *,
    floor: float = 0.0,
    moves: int | None = None,
) -> tuple[float, list[Part]] | None:
    """Search for better parts, from given or from random ones, and return the best with their value.

    Parameters
    ----------
    problem
        A problem for a free or a convex split.
    start
        Parts to start from, which may break the limits; None for random ones.
    settings
        Say when to stop; nothing else of them is used.
    seconds
        Wall time after which to stop.
    seed
        The same seed and `moves` give the same parts.
    floor
        Stop once the value is at most this.
    moves
        Stop after that many moves of one supernode; None for no limit.

    Returns
    -------
    tuple or None
        The value and the parts, never worse than a feasible `start`; None if no parts were found that obey
        the limits.
    """
    search = LocalSearch(PartLayout(problem), seed)
    if start is not None:
        search.offer(start)
    clock = Clock(seconds)

    def go_on() -> bool:
        late = clock.expired or settings.expired
        return not late and search.value > floor

    search.run(go_on, moves)
    return None if search.parts is None else (search.value, search.parts)
