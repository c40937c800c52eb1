"""Replicas: stages that several devices hold a copy of (paper, Appendix H.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.evaluation.placed import Placed, is_device
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Replicas:
    """The devices that share a stage; the placement names the first device of each stage.

    Parameters
    ----------
    lead
        Shape (devices,): position of the first device of each device's stage; the device's own position if
        it does not hold a copy of another device's stage.
    count
        Shape (devices,): how many copies of that stage there are; each is run by one device, or by as many as
        the degree of its alternatives says.
    devices
        Shape (devices,): how many devices run that stage.
    """

    lead: Ints
    count: Ints
    devices: Ints

    def teams(self, stage: int) -> list[tuple[int, ...]]:
        """Return the devices of each copy of a stage, which run it together; they follow one another.

        `stage` is the position of the stage's first device.
        """
        held = (stage, *np.flatnonzero((self.lead == stage) & self.further).tolist())
        degree = int(self.devices[stage] // self.count[stage])
        return [held[first : first + degree] for first in range(0, len(held), degree)]

    @property
    def further(self) -> Bools:
        """Shape (devices,): whether the device holds a copy of another device's stage."""
        return np.asarray(self.lead != np.arange(len(self.lead)))


def shared_out(placed: Placed, copies: Replicas) -> Floats:
    """Return by how much less memory each device holds since copies divide states, shape (devices,).

    With `zero` 1 the r copies of a stage hold an r-th part each of the optimizer's state, with 2 or 3 of the
    gradients, too.
    """
    _, gradients, optimizer, _, _ = placed.graph.parts
    zero = 0 if placed.graph.alternatives else placed.graph.extras.zero
    states = optimizer * (zero >= 1) + gradients * (zero >= 2)
    whole = np.bincount(placed.device, states, len(placed.names))
    return np.asarray(whole * (1 - 1 / copies.count))


def replica_names(devices: Devices, replicas: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Return the names of the further devices of all stages.

    Raises
    ------
    WorkloadError
        If a value holds anything but names of devices.
    """
    found = tuple(name for names in replicas.values() for name in names)
    wrong = [name for name in found if not is_device(devices, name)]
    if wrong:
        kinds = ", ".join(kind.name for kind in devices.kinds)
        rule = f"must be a kind ({kinds}) and a number, such as {devices.names[0]}"
        raise WorkloadError([Flaw("replicas", "device", shown(name), rule) for name in wrong])
    return found


def read_replicas(placed: Placed, replicas: Mapping[str, Sequence[str]]) -> Replicas:
    """Return the further devices of every stage as arrays.

    Raises
    ------
    WorkloadError
        If no node is on a stage's device, or a further device is of another kind or in use already.
    """
    number = {name: i for i, name in enumerate(placed.names)}
    used = np.bincount(placed.device, minlength=len(number)) > 0
    lead = np.arange(len(number))
    flaws = []
    for name, further in replicas.items():
        if name not in number or not used[number[name]]:
            flaws.append(Flaw("replicas", "", shown(name), "must be a device that a node is placed on"))
            continue
        for other in further:
            i = number[other]
            if placed.kind[i] != placed.kind[number[name]]:
                flaws.append(Flaw(f"replicas of {name}", "", shown(other), "must be of the same kind"))
            elif used[i] or lead[i] != i:
                flaws.append(Flaw(f"replicas of {name}", "", shown(other), "is in use already"))
            lead[i] = number[name]
    if flaws:
        raise WorkloadError(flaws)
    degree = np.ones(len(lead), dtype=np.int64)
    np.maximum.at(degree, placed.device, placed.degree)
    devices = np.bincount(lead, minlength=len(lead))[lead]
    return Replicas(lead, np.maximum(devices // degree[lead], 1), devices)
