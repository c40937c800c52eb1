"""How the decision about one more supernode, in or out of the set, changes the state.

A state has two bits for every open net and, for convex splits, for every node of a region that has
undecided successors: `OUT`, `IN`, or `TORN`. A torn net has pins on both sides and is paid for; a torn
node is outside, but a path leads to it from inside, so that no node that follows it can be inside again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import networkx as nx
import numpy as np
import numpy.typing as npt

from partitioner.problem.arrays import Floats, Ints
from partitioner.problem.problem import Region
from partitioner.problem.variants import PartsProblem

OFTEN = 1024  # states between two readings of the clock


class CoverStates(NamedTuple):
    """A layered graph whose paths are the sets that one device can hold at a load of at most T.

    Parameters
    ----------
    start
        Shape (n + 2,): the states before supernode v are ``start[v]`` to ``start[v + 1]``.
    after
        Shape (states, 2): the next state if the supernode is out, and if it is in; -1 if there is none.
    load
        Shape (states, 2): the load that each of the two choices adds.
    rest
        Shape (states,): the least load that any path from the state to the end adds.
    """

    start: Ints
    after: Ints
    load: Floats
    rest: Floats


States = npt.NDArray[np.uint64]  # the codes of every state, packed in words


class Layer(NamedTuple):
    """The states before a supernode is decided, numbered from 0.

    Parameters
    ----------
    before
        Shape (states,): the least load with which each is reached.
    after, load
        Shape (states, 2): as in :class:`CoverStates`, with the next states numbered within their layer.
    """

    before: Floats
    after: Ints
    load: Floats


@dataclass(frozen=True, eq=False)
class Ways:
    """The graph of states for the largest threshold, from which that of each threshold is made.

    Parameters
    ----------
    layers
        A layer for each supernode.
    least
        Shape (1,): the least load of a path to the end; shape (0,) if there is none.
    """

    layers: list[Layer]
    least: Floats

    def within(self, threshold: float) -> CoverStates:
        """Return the graph with only the paths whose load is at most the threshold."""
        return _joined(_pruned(self, threshold))


def enumerate_ways(
    steps: list[DecisionStep],
    time: Floats,
    threshold: float,
    most: int,
    left: Callable[[], float] = lambda: np.inf,
) -> Ways | None:
    """Return the graph of states; None if there are more than `most` states, or no seconds are `left`.

    Parameters
    ----------
    steps
        The changes of the state at each supernode.
    time
        Shape (n,): the load of each supernode, infinity if it may not be in the set.
    threshold
        The largest load; states that are reached only by more are left out.
    """
    layers: list[Layer] = []
    words = 1 + max((step.last_place for step in steps), default=0) // WORD
    current, least = np.zeros((1, words), dtype=np.uint64), np.zeros(1)
    for step, here in zip(steps, time.tolist(), strict=True):
        parts = []
        for first in range(0, len(current), OFTEN):
            if left() <= 0:
                return None
            parts.append(decided(current[first : first + OFTEN], step, here))
        new, load = (np.concatenate(each) for each in zip(*parts, strict=True))
        fits = least[:, None] + load <= threshold
        after = np.full(load.shape, -1)
        current, after[fits] = _distinct(new[fits])
        layers.append(Layer(least, after, load))
        least = _least_loads(least, after, load, len(current))
        most -= len(current)
        if most < 0:
            return None
    return Ways(layers, least)


def _distinct(states: States) -> tuple[States, Ints]:
    """Return the distinct states, and the number of each given state among them."""
    key = np.zeros(len(states), dtype=np.int64)
    for word in states.T:
        values, number = np.unique(word, return_inverse=True)
        key = key * len(values) + number
        _, first, key = np.unique(key, return_index=True, return_inverse=True)
    return states[first], key


def _least_loads(before: Floats, after: Ints, load: Floats, states: int) -> Floats:
    """Return the least load with which each of the next states is reached."""
    least = np.full(states, np.inf)
    way = after >= 0
    np.minimum.at(least, after[way], (before[:, None] + load)[way])
    return least


def _pruned(ways: Ways, threshold: float) -> list[tuple[Ints, Floats, Floats]]:
    """Return the layers without paths that exceed the threshold, and the least load from each state on."""
    rest = np.zeros(len(ways.least))
    number = np.where(ways.least <= threshold, 0, -1)
    pruned: list[tuple[Ints, Floats, Floats]] = []
    for before, after, load in reversed(ways.layers):
        ahead = np.where(after >= 0, load + rest[after], np.inf)
        ahead[before[:, None] + ahead > threshold] = np.inf
        after = np.where(np.isfinite(ahead), number[after], -1)
        rest = ahead.min(axis=1)
        keep = np.isfinite(rest)
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        pruned.append((after[keep], load[keep], rest[keep]))
    return pruned[::-1]


def _joined(layers: list[tuple[Ints, Floats, Floats]]) -> CoverStates:
    """Return all layers joined in single arrays, with one state at the end."""
    start = np.cumsum([0, *(len(after) for after, _, _ in layers), 1])
    after = [np.where(part >= 0, part + start[v + 1], -1) for v, (part, _, _) in enumerate(layers)]
    return CoverStates(
        start=start.astype(np.int64),
        after=np.concatenate([*after, np.full((1, 2), -1)]),
        load=np.concatenate([*(load for _, load, _ in layers), np.zeros((1, 2))]),
        rest=np.concatenate([*(rest for _, _, rest in layers), np.zeros(1)]),
    )


OUT, IN, TORN = 0, 1, 2
MASK = np.uint64(3)
WORD = 64  # bits of a word of a state


class NetStep(NamedTuple):
    """A net of the supernode: its bit position in the state, its load if torn, if this is its first pin."""

    place: int
    cost: float
    is_first: bool


class NodeStep(NamedTuple):
    """A node of a region: its bit position in the state, and those of its predecessors."""

    place: int
    before: list[int]


@dataclass(eq=False)
class DecisionStep:
    """The nets and nodes that the decision about a supernode changes, and the places to clear after it."""

    nets: list[NetStep] = field(default_factory=list)
    nodes: list[NodeStep] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)

    @property
    def last_place(self) -> int:
        """The highest bit position that the step touches."""
        return max([net.place for net in self.nets] + [node.place for node in self.nodes], default=0)


def decided(states: States, step: DecisionStep, here: float) -> tuple[States, Floats]:
    """Return the next states if the supernode is out or in, and the loads added; infinity if not allowed.

    Parameters
    ----------
    states
        Shape (m, words): states before the decision.
    step
        What it changes.
    here
        The load of the supernode if it is in.

    Returns
    -------
    states, load
        Shapes (m, 2, words) and (m, 2).
    """
    new = np.repeat(states[:, None], 2, axis=1)
    load = np.zeros((len(states), 2))
    bit = np.array([OUT, IN], dtype=np.uint64)
    for place, cost, is_first in step.nets:
        code = bit if is_first else _read(new, place)
        torn = (code != bit) & (code != TORN)
        load += np.where(torn, cost, 0.0)
        _write(new, place, np.where(torn, TORN, code))
    for place, before in step.nodes:
        codes = [_read(new, earlier) for earlier in before]
        torn = np.any([code == TORN for code in codes], axis=0)
        reached = np.any([code != OUT for code in codes], axis=0)
        load += np.where(torn & (bit == IN), np.inf, 0.0)
        _write(new, place, np.where(bit == IN, IN, np.where(reached, TORN, OUT)))
    for place in step.closed:
        _write(new, place, OUT)
    load[:, IN] += here
    return new, load


def _read(states: States, place: int) -> States:
    """Return the code that each state has at a place."""
    code: States = (states[..., place // WORD] >> np.uint64(place % WORD)) & MASK
    return code


def _write(states: States, place: int, code: Ints | States | int) -> None:
    """Set the code that each state has at a place."""
    word, shift = place // WORD, np.uint64(place % WORD)
    states[..., word] &= ~(MASK << shift)
    states[..., word] |= np.asarray(code, dtype=np.uint64) << shift


def steps_of(
    problem: PartsProblem, cut: Floats, convex: bool, left: Callable[[], float] = lambda: np.inf
) -> list[DecisionStep] | None:
    """Return the step of every supernode in order; None if no seconds are `left`.

    Parameters
    ----------
    problem
        The problem; its supernodes are decided in the order of their numbers.
    cut
        Shape (nets,): the load of a torn net.
    convex
        Whether the set must be contiguous in the problem's regions.
    left
        Function that returns how many seconds are left.
    """
    steps = [DecisionStep() for _ in range(problem.n)]
    free: list[int] = []
    fresh = count(0, 2)
    nodes = [_Nodes(region, problem.n) for region in problem.regions] if convex else []
    closing: list[list[int]] = [[] for _ in range(problem.n)]
    for v, step in enumerate(steps):
        if left() <= 0:
            return None
        for e in problem.nets.of_node.row(v).tolist():
            pins = problem.nets.pins.row(e)
            is_first = bool(pins[0] == v)
            if is_first:
                place = free.pop() if free else next(fresh)
                closing[int(pins[-1])].append(place)
                for pin in pins.tolist():
                    steps[pin].nets.append(NetStep(place, float(cut[e]), pin == v))
        for part in nodes:
            for node in part.of_supernode[v]:
                place = part.place[node] = free.pop() if free else next(fresh)
                closing[part.last[node]].append(place)
                step.nodes.append(NodeStep(place, [part.place[u] for u in part.before[node]]))
        step.closed = closing[v]
        free += closing[v]
    return steps


class _Nodes:
    """The nodes of a region in the order of the supernodes, without the edges against that order.

    Without an edge more sets are allowed, so the bound stays valid.
    """

    def __init__(self, region: Region, n: int) -> None:
        owner, edges = region.owner, region.edges
        if len(edges) and (owner[edges[:, 0]] > owner[edges[:, 1]]).mean() > 0.5:
            edges = edges[:, ::-1]  # contiguity is the same both ways
        edges = edges[owner[edges[:, 0]] <= owner[edges[:, 1]]]
        self.place: dict[int, int] = {}
        self.before: list[list[int]] = [[] for _ in owner]
        self.last: list[int] = owner.tolist()
        for u, v in edges.tolist():
            self.before[v].append(u)
            self.last[u] = max(self.last[u], int(owner[v]))
        self.of_supernode: list[list[int]] = [[] for _ in range(n)]
        for node in _sorted(len(owner), edges):
            self.of_supernode[owner[node]].append(node)


def _sorted(count: int, edges: Ints) -> Iterator[int]:
    """Yield the nodes of a region in a topological order."""
    digraph: nx.DiGraph[int] = nx.DiGraph()
    digraph.add_nodes_from(range(count))
    digraph.add_edges_from(edges.tolist())
    yield from nx.topological_sort(digraph)
