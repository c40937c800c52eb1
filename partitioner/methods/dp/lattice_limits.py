"""The lattice of all ideals, if it fits the memory budget and the time."""

from __future__ import annotations

from partitioner.methods.dp.ideals import Lattice, ideal_lattice
from partitioner.methods.dp.linear import PLAIN, Chain, ChainModel
from partitioner.methods.method import Settings

COVERS_PER_IDEAL = 12
IDEALS_PER_SECOND = 1_000_000


def lattice_within(
    problem: Chain, settings: Settings, model: ChainModel[Chain] = PLAIN, most: int | None = None
) -> Lattice | None:
    """Return the lattice of all ideals; None if it does not fit the memory budget or has more than `most`."""
    limit = _max_ideals(problem, settings, model)
    limit = limit if most is None else min(limit, most)
    try:
        return ideal_lattice(problem, limit, COVERS_PER_IDEAL * limit, lambda: settings.expired)
    except MemoryError:  # the process has less than the budget
        return None


def too_many(problem: Chain, settings: Settings, model: ChainModel[Chain] = PLAIN) -> str:
    """Return a note that the lattice does not fit the memory budget, or that the run ended before."""
    if settings.expired:
        return "the run ended before all ideals were enumerated: only linear orders were searched"
    most, budget = _max_ideals(problem, settings, model), f"{settings.memory_budget / 2**30:.3g} GiB"
    if most == 0:
        kinds = int((problem.count > 0).sum())
        table = f"no table over {kinds} kinds of devices"
        return f"the memory budget of {budget} holds {table}: only linear orders were searched"
    return (
        f"more ideals than fit in memory, at most {most:,} in the memory budget of {budget}: the search was "
        "not exhaustive"
    )


def ideal_bytes(problem: Chain, model: ChainModel[Chain]) -> int:
    """Return the bytes of an ideal: each takes its states, its covers and 50 more bytes."""
    return model.state_bytes(problem) + 8 * COVERS_PER_IDEAL + 4 * len(problem.count) + 50


def _max_ideals(problem: Chain, settings: Settings, model: ChainModel[Chain]) -> int:
    """Return how many ideals the budget and the time allow."""
    limit = settings.memory_budget // ideal_bytes(problem, model)
    if settings.deadline is not None:
        limit = min(limit, int(settings.clock.left * IDEALS_PER_SECOND))
    return max(0, min(limit, (2**31 - 1) // COVERS_PER_IDEAL))
