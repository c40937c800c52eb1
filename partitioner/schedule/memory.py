"""The memory that each device holds while a table runs, pass by pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.schedule.passes import Passes, kinds_of
from partitioner.schedule.table import FORWARD, Table
from partitioner.workload.graph import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Use:
    """The memory of one device during the passes of its row.

    Parameters
    ----------
    running, rest
        Shape (passes of the row,): the memory held while each pass runs, and after it has ended.
    idle
        The memory held before the first pass.
    in_flight
        The most samples whose activations are held at once; a sample counts once for each stage.
    """

    running: Floats
    rest: Floats
    idle: float
    in_flight: int

    @property
    def peak(self) -> float:
        """The most memory that is held at once."""
        return float(max(self.idle, self.running.max(initial=0.0)))


def use_of(table: Table, passes: Passes, versions: bool) -> tuple[Use, ...]:
    """Return the memory of every device of a table; it depends only on the order of the passes.

    The activations of a pass are allocated when its processing begins, and released when the processing of
    pass `release` of the same sample ends. Workspace is held while a pass runs. With `versions` every sample
    in flight holds the weights that it began with; otherwise there is one version.
    """
    kinds = kinds_of(table, passes)
    position = {name: i for i, name in enumerate(passes.names)}
    lead = {device: key for key, copies in passes.replicas.items() for device in copies}
    found = []
    for i, name in enumerate(table.devices):
        row = slice(table.start[i], table.start[i + 1])
        found.append(_use(kinds[row], lead[position[name]], passes, versions))
    return tuple(found)


def _use(kinds: Ints, lead: int, passes: Passes, versions: bool) -> Use:
    own = np.flatnonzero(passes.device == lead)
    idle = float(passes.fixed[lead] + passes.parameters[own].sum())
    taken, given = passes.activations[kinds], _released(passes, own, passes.activations)[kinds]
    held = idle + _before(taken) - _before(given) + taken
    if versions:
        held += sum((_versions(kinds, i, passes) for i in own.tolist()), np.zeros(len(kinds)))
    counted = own[passes.direction[own] == FORWARD] if passes.trains else own
    begun = np.isin(kinds, counted)
    ended = _released(passes, counted, np.ones(len(passes)))[kinds]
    in_flight = _before(begun) + begun - _before(ended)
    return Use(
        held + passes.workspace[kinds],
        held - given,
        idle,
        round(in_flight.max(initial=0)),
    )


def _released(passes: Passes, own: Ints, amount: Floats) -> Floats:
    """Return the amount of the passes `own` that is released at the end of each pass of a sample."""
    return np.bincount(passes.release[own], amount[own], len(passes)).astype(np.float64)


def _versions(kinds: Ints, i: int, passes: Passes) -> Floats:
    """Return the memory of the versions of pass i's weights beyond the first, for each pass of a row."""
    begun, ended = kinds == i, kinds == passes.release[i]
    return np.asarray(passes.parameters[i] * np.maximum(0, _before(begun) + begun - _before(ended) - 1))


def _before(values: Floats | Bools) -> Floats:
    """Return the sum of the values of the passes before each pass."""
    total = np.cumsum(values, dtype=np.float64)
    return np.asarray(total - values)
