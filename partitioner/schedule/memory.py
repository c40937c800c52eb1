"""What each device holds while a table runs, counted pass by pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from partitioner.schedule.passes import Passes
from partitioner.schedule.places import kinds_of
from partitioner.schedule.table import FORWARD, Table
from partitioner.workload.graph import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Use:
    """Memory of one device along its row.

    Parameters
    ----------
    running, rest
        Shape (passes of the row,): what is held while each pass runs, and when it has ended.
    idle
        What is held before the first pass.
    in_flight
        The most samples, each counted once a stage, whose activations were held at once.
    """

    running: Floats
    rest: Floats
    idle: float
    in_flight: int

    @property
    def peak(self) -> float:
        """The most that is held."""
        return float(max(self.idle, self.running.max(initial=0.0)))


def use_of(table: Table, passes: Passes, versions: bool) -> tuple[Use, ...]:
    """Memory of every device of a table, by the order of its passes alone.

    A pass takes its activations when its processing begins; they are given back when that of the pass
    `release` of the same sample ends. Workspace is held while a pass runs. With `versions` every sample
    in flight holds the weights that it began with, else there is one version.
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
    """Shape (kinds of passes,): what of `own` passes is given back at the end of each."""
    return np.bincount(passes.release[own], amount[own], len(passes)).astype(np.float64)


def _versions(kinds: Ints, i: int, passes: Passes) -> Floats:
    """What the versions of the weights of pass i take beyond one, along a row."""
    begun, ended = kinds == i, kinds == passes.release[i]
    return np.asarray(passes.parameters[i] * np.maximum(0, _before(begun) + begun - _before(ended) - 1))


def _before(values: Floats | Bools) -> Floats:
    """What the passes before each pass add up to."""
    total = np.cumsum(values, dtype=np.float64)
    return np.asarray(total - values)
