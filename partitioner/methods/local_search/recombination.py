"""Two placements recombined: what both of them keep together becomes one supernode of a smaller search.

Memetic search of this kind is known from hypergraph partitioning (Andre, Schlag and Schulz, 2018).
"""

from __future__ import annotations

import networkx as nx
import numpy as np

from partitioner.methods.local_search.arrays import PlacementModel
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of

SIZE = 12  # placements of a population
SAME = 1e-9  # relative difference of values below which placements count as equal


class Population:
    """The best placements of rounds of a search, no two of the same value.

    Examples
    --------
    >>> population = Population(2)
    >>> for value in (3.0, 2.0, 2.0, 1.0, 4.0):
    ...     population.add(value, np.zeros(1, dtype=np.int64))
    >>> [value for value, _ in population.members]
    [1.0, 2.0]
    """

    def __init__(self, size: int = SIZE) -> None:
        self.size = size
        self.members: list[tuple[float, Ints]] = []

    @property
    def is_full(self) -> bool:
        """Whether it has as many placements as it may have."""
        return len(self.members) == self.size

    def add(self, value: float, place: Ints) -> None:
        """Keep a feasible placement, shape (n,), if it is among the best and its value is new."""
        known = any(abs(value - other) <= SAME * other for other, _ in self.members)
        if np.isfinite(value) and not known:
            self.members.append((value, place))
            self.members.sort(key=lambda member: member[0])
            del self.members[self.size :]

    def draw(self, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Return two different placements of a full population."""
        first, second = random.choice(self.size, 2, replace=False)
        return self.members[first][1], self.members[second][1]


def common_clusters(model: PlacementModel, first: Ints, second: Ints) -> Ints:
    """Return the cluster of every supernode, shape (n,).

    Supernodes that share a net are in one cluster if both placements have them on one device.

    Parameters
    ----------
    model
        The costs of placements.
    first, second
        Shape (n,) each: the device of every supernode.
    """
    pair = first * len(model.room) + second
    net = np.repeat(np.arange(len(model.cost)), np.diff(model.pin_start))
    order = np.lexsort((pair[model.pin], net))
    pin, net = model.pin[order], net[order]
    linked = (net[1:] == net[:-1]) & (pair[pin[1:]] == pair[pin[:-1]])
    graph: nx.Graph[int] = nx.empty_graph(len(pair))
    graph.add_edges_from(zip(pin[:-1][linked].tolist(), pin[1:][linked].tolist(), strict=True))
    cluster = np.empty(len(pair), dtype=np.int64)
    for i, members in enumerate(nx.connected_components(graph)):
        cluster[list(members)] = i
    return cluster


def merged(model: PlacementModel, cluster: Ints) -> PlacementModel:
    """Return the costs of the placements that keep every cluster on one device.

    Parameters
    ----------
    model
        The costs of all placements.
    cluster
        Shape (n,): the cluster of every supernode, from 0 to m - 1 for m clusters.
    """
    count = int(cluster.max()) + 1
    pins, nets, read = _pins(model, cluster)
    by_pin = np.argsort(pins, kind="stable")
    source = cluster[model.made[:, 1]]
    ahead = _rows_between(Rows(model.ahead_start, model.ahead), cluster, count)
    behind = _rows_between(Rows(model.behind_start, model.behind), cluster, count)
    pin_rows = rows_of(nets, pins, len(model.cost))
    allowed = np.ones((count, len(model.room)), dtype=bool)
    np.logical_and.at(allowed, cluster, model.allowed)
    return model._replace(
        time=_sums(model.time, cluster, count),
        size=_sums(model.size, cluster, count),
        allowed=allowed,
        net_start=rows_of(pins, nets, count).start,
        net=np.stack((nets[by_pin], read[by_pin]), axis=1),
        pin_start=pin_rows.start,
        pin=pin_rows.items,
        made=np.stack((np.diff(pin_rows.start), source, model.made[:, 2]), axis=1),
        owner=cluster[model.owner],
        ahead_start=ahead.start,
        ahead=ahead.items,
        behind_start=behind.start,
        behind=behind.items,
    )


def _pins(model: PlacementModel, cluster: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the clusters and nets of all pins, net by net, and the pass in which each first reads."""
    owner = np.repeat(np.arange(len(cluster)), np.diff(model.net_start))
    rows = np.stack((model.net[:, 0], cluster[owner], model.net[:, 1]), axis=1)
    rows = rows[np.lexsort(rows.T[::-1])]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:, :2] != rows[:-1, :2]).any(axis=1)
    nets, pins, read = rows[first].T
    return pins, nets, read


def _rows_between(rows: Rows, cluster: Ints, count: int) -> Rows:
    """Return rows over supernodes as rows over clusters; none at all stays none at all."""
    if len(rows.start) < 2:
        return rows
    pairs = np.stack((cluster[rows.owners()], cluster[rows.items]), axis=1)
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    return rows_of(pairs[:, 0], pairs[:, 1], count)


def _sums(values: Floats, cluster: Ints, count: int) -> Floats:
    """Return the sums of the values of supernodes over their clusters."""
    sums = np.zeros((count, *values.shape[1:]))
    np.add.at(sums, cluster, values)
    return sums
