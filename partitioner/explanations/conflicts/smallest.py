"""The smallest set of demands that conflict, by hitting sets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

HasPlan = Callable[[frozenset[int]], bool | None]


def smallest_conflict(count: int, has_plan: HasPlan) -> tuple[frozenset[int], bool]:
    """Return a smallest set of demands that no plan obeys all of, and whether that is proven.

    A conflict has a demand in common with every set of demands without which there is a plan. The method
    takes a smallest set that has one in common with all such sets known so far; if no plan obeys that, it is
    a smallest conflict. Otherwise it adds demands as long as there is a plan; those that remain are a new set
    without which there is one (Ignatiev, Previti, Liffiton and Marques-Silva, CP 2015).

    Parameters
    ----------
    count
        The number of demands, which no plan obeys all of.
    has_plan
        Whether there is a plan that obeys some demands, given by their numbers; None if that is not known.

    Examples
    --------
    >>> smallest_conflict(4, lambda kept: not kept >= {1, 3})
    (frozenset({1, 3}), True)
    """
    everything, proven = frozenset(range(count)), True
    without: list[frozenset[int]] = []
    while True:
        chosen = _hitting(without, count)
        answer = False if chosen == everything else has_plan(chosen)
        if answer is False:
            return chosen, proven
        proven &= answer is not None
        kept, known = _grown(chosen, everything, has_plan)
        proven &= known
        without.append(everything - kept)


def _hitting(sets: Sequence[frozenset[int]], count: int) -> frozenset[int]:
    """Return a smallest set of numbers that has one in common with each of the sets."""
    members = sorted(frozenset().union(*sets))
    return next(
        frozenset(chosen)
        for size in range(count + 1)
        for chosen in combinations(members, size)
        if all(each & set(chosen) for each in sets)
    )


def _grown(
    chosen: frozenset[int], everything: frozenset[int], has_plan: HasPlan
) -> tuple[frozenset[int], bool]:
    """Return a largest extension of some demands without a known conflict, and whether it is known."""
    kept, known = chosen, True
    for demand in sorted(everything - chosen):
        if kept | {demand} == everything:
            break
        answer = has_plan(kept | {demand})
        known &= answer is not None
        kept = kept if answer is False else kept | {demand}
    return kept, known
