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


Layer = tuple[Ints, Floats]
States = npt.NDArray[np.uint64]  # the codes of every state, packed in words


@dataclass(frozen=True, eq=False)
class Ways:
    """The graph of states for the largest threshold, from which that of each threshold is made.

    Parameters
    ----------
    layers
        For each supernode the next states and the loads added, as in :class:`CoverStates`; states are
        numbered within their layer.
    """

    layers: list[Layer]

    def within(self, threshold: float) -> CoverStates:
        """Return the graph with only the paths whose load is at most the threshold."""
        return _joined(_pruned(self.layers, threshold))


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
        The largest load; a single step that adds more is left out.
    """
    layers: list[Layer] = []
    words = 1 + max((step.last_place for step in steps), default=0) // WORD
    current, least = np.zeros((1, words), dtype=np.uint64), np.zeros(1)
    for step, here in zip(steps, time.tolist(), strict=True):
        if left() <= 0:
            return None
        choices = [advance(current, bit, step) for bit in (OUT, IN)]
        load = np.stack([paid + (here if bit else 0.0) for bit, (_, paid) in enumerate(choices)], axis=1)
        fits = least[:, None] + load <= threshold
        following, number = _distinct(
            np.concatenate([new[fits[:, bit]] for bit, (new, _) in enumerate(choices)])
        )
        after = np.full(load.shape, -1, dtype=np.int64)
        after.T[fits.T] = number
        layers.append((after, load))
        least = _least_loads(after, least[:, None] + load, len(following))
        current = following
        most -= len(current)
        if most < 0:
            return None
    return Ways(layers)


def _distinct(states: States) -> tuple[States, Ints]:
    """Return the distinct states, and the number of each given state among them."""
    key = np.zeros(len(states), dtype=np.int64)
    for word in states.T:
        values, number = np.unique(word, return_inverse=True)
        key = key * len(values) + number
        _, first, key = np.unique(key, return_index=True, return_inverse=True)
    return states[first], key


def _least_loads(after: Ints, load: Floats, states: int) -> Floats:
    """Return the least load with which each of the next states is reached."""
    least = np.full(states, np.inf)
    way = after >= 0
    np.minimum.at(least, after[way], load[way])
    return least


def _pruned(layers: list[Layer], threshold: float) -> list[tuple[Ints, Floats, Floats]]:
    """Return the layers without paths that exceed the threshold, and the least load from each state on."""
    so_far = [np.zeros(1)]
    for after, load in layers:
        so_far.append(_least_loads(after, so_far[-1][:, None] + load, int(after.max(initial=-1)) + 1))
    rest = np.zeros(len(so_far[-1]))
    number = np.where(so_far[-1] <= threshold, 0, -1)
    pruned: list[tuple[Ints, Floats, Floats]] = []
    for (after, load), before in zip(reversed(layers), reversed(so_far[:-1]), strict=True):
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


def advance(states: States, bit: int, step: DecisionStep) -> tuple[States, Floats]:
    """Return the next states and the load of the nets torn by the decision; infinity if it is not allowed.

    Parameters
    ----------
    states
        Shape (m, words): states before the decision.
    bit
        The decision.
    step
        What it changes.
    """
    states, paid = states.copy(), np.zeros(len(states))
    for place, cost, is_first in step.nets:
        if is_first:
            _write(states, place, bit)
            continue
        code = _read(states, place)
        torn = code == (OUT if bit == IN else IN)
        paid[torn] += cost
        _write(states, place, np.where(torn, TORN, code))
    for place, before in step.nodes:
        codes = [_read(states, earlier) for earlier in before]
        if bit == IN:
            for code in codes:
                paid[code == TORN] = np.inf
            _write(states, place, IN)
        else:
            reached = np.any([code != OUT for code in codes], axis=0) if codes else OUT
            _write(states, place, np.where(reached, TORN, OUT))
    for place in step.closed:
        _write(states, place, OUT)
    return states, paid


def _read(states: States, place: int) -> States:
    """Return the code that each state has at a place."""
    code: States = (states[:, place // WORD] >> np.uint64(place % WORD)) & MASK
    return code


def _write(states: States, place: int, code: States | int) -> None:
    """Set the code that each state has at a place."""
    word, shift = place // WORD, np.uint64(place % WORD)
    states[:, word] &= ~(MASK << shift)
    states[:, word] |= np.asarray(code, dtype=np.uint64) << shift


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
