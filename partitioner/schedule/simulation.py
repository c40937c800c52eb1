"""The simulation of a schedule with the times of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import networkx as nx

from partitioner.devices import Devices
from partitioner.graph import Graph
from partitioner.schedule.table import Table
from partitioner.schedule.timeline import Timeline

LINKS = ("host", "direct")


class Planned(Protocol):
    """Anything that says where every node goes, such as a plan."""

    @property
    def placement(self) -> Mapping[Any, str]:
        """Device name for every node id."""


def simulate(
    graph: Graph | nx.DiGraph[Any],
    devices: Devices,
    plan: Planned | Mapping[Any, str],
    schedule: str | Table = "1f1b",
    microbatches: int | None = None,
    *,
    replicas: Mapping[str, Sequence[str]] | None = None,
    order: Sequence[str] | None = None,
    links: str = "host",
    input_share: float = 0.5,
) -> Timeline:
    """Run a schedule with the times of a plan and record what runs when."""
    raise NotImplementedError
