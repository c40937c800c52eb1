"""A task of a sweep: one workload on one pool with one set of options, and the key that tells it apart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from partitioner.analysis.sweeps.row import SweepRow
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.request import plain
from partitioner.workload.devices import Devices

KEY_LENGTH = 32


@dataclass(frozen=True, eq=False)
class SweepTask:
    """A task of a sweep, in the form that is sent to a worker.

    Parameters
    ----------
    workload, pool
        The names of the workload and of the pool.
    graph
        The pickled graph, so that workers need no file.
    digest
        The hash of the graph's data.
    devices
        The devices.
    options
        The keywords of :func:`partitioner.solve`, the objective among them.
    """

    workload: str
    pool: str
    graph: bytes
    digest: str
    devices: Devices
    options: Mapping[str, Any]

    @cached_property
    def given(self) -> dict[str, Any]:
        """The options other than the objective that are not the default, as plain data."""
        return {
            name: value
            for name, value in plain(self.options).items()
            if name != "objective" and not OPTIONS[name].is_default(self.options[name])
        }

    @cached_property
    def key(self) -> str:
        """The hash of the workload, the devices and the options."""
        asked = json.dumps([self.options["objective"], sorted(self.given.items())])
        return hashlib.sha256(f"{self.digest}|{self.devices.text}|{asked}".encode()).hexdigest()[:KEY_LENGTH]

    def row(self, status: str, **found: Any) -> SweepRow:
        """Return the row of the task with its status and what was found."""
        return SweepRow(
            self.key,
            self.workload,
            self.pool,
            len(self.devices.names),
            self.options["objective"],
            status,
            self.given,
            **found,
        )
