"""The supernodes between which a sequence of blocks is cut, and the costs of blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from partitioner.methods.dp.forms import merged
from partitioner.methods.method import Settings
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.orders import depth_first
from partitioner.problem.precedence import distinct, merge_cycles, relabelled
from partitioner.problem.variants import ChainProblem, SampleProblem
from partitioner.workload.devices import COMMUNICATION_MODELS


class BlockCosts(NamedTuple):
    """The costs of blocks of supernodes: K kinds, n supernodes, N nodes, E nets between halves.

    A supernode has a forward and a backward half; the nodes of a pass that share a block are a subgraph.

    Parameters
    ----------
    work
        Shape (K, 2, n): processing time of the halves, infinity where a kind may not run them.
    size, memory
        Shapes (n,) and (K,): memory that supernodes need, and that devices have.
    pays, communication
        Shape (K,): which kinds pay for transfers; and the number of the communication model.
    net_start, net, backward_pin, makes
        Rows over supernodes: each net, 1 if it is a net of the backward half, and whether that half makes the
        tensor.
    pins, cost
        Shape (E,): how many halves a net has, and the cost of each transfer.
    node_start, node
        Rows over supernodes: the nodes of each, every one after those in `before`.
    before_start, before
        Rows over nodes: the nodes that are added to a block before each, that is the predecessors of a
        forward node, and the successors in its pass of a backward node.
    time, backward
        Shapes (K, N) and (N,): time of each node, and 1 for those of the backward pass.
    """

    work: Floats
    size: Floats
    memory: Floats
    pays: NDArray[np.bool_]
    communication: int
    net_start: Ints
    net: Ints
    backward_pin: Ints
    makes: NDArray[np.bool_]
    pins: Ints
    cost: Floats
    node_start: Ints
    node: Ints
    before_start: Ints
    before: Ints
    time: Floats
    backward: Ints


def sequenced(problem: SampleProblem, chain: ChainProblem) -> tuple[ChainProblem, Ints]:
    """Return the chain with every edge of the backward pass reversed, and the supernode of every node.

    Then the blocks of a sequence can run forward in their order and backward in the reverse order; edges that
    allow neither are inside supernodes.

    Parameters
    ----------
    problem
        A problem for latency.
    chain
        One of its contractions for chains.
    """
    member = chain.member[np.argsort(problem.member)]
    source, target = problem.successors.owners(), problem.successors.items
    back = problem.backward[source]
    mirrored = np.stack((member[target[back]], member[source[back]]), axis=1)
    known = np.stack((chain.successors.owners(), chain.successors.items), axis=1)
    pairs = np.concatenate((known, mirrored[mirrored[:, 0] != mirrored[:, 1]]))
    if len(distinct(pairs)) == len(known):
        return chain, member
    coarse, label = _contracted(chain, np.arange(chain.n), pairs)
    return coarse, label[member]


def coarsened(
    chain: ChainProblem, number: Ints, share: float, rng: np.random.Generator
) -> tuple[ChainProblem, Ints]:
    """Return the problem with the ends of random edges merged, and the new supernode of every old one.

    Parameters
    ----------
    chain
        A problem from :func:`sequenced`.
    number
        Shape (n,): the number of each supernode's block in a sequence of blocks; different blocks are not
        merged.
    share
        The share of the edges inside blocks whose ends are merged.
    """
    pairs = np.stack((chain.successors.owners(), chain.successors.items), axis=1)
    chosen = (number[pairs[:, 0]] == number[pairs[:, 1]]) & (rng.random(len(pairs)) < share)
    bonds: nx.Graph[int] = nx.Graph(pairs[chosen].tolist())
    label = np.arange(chain.n)
    for together in nx.connected_components(bonds):
        label[list(together)] = min(together)
    return _contracted(chain, np.unique(label, return_inverse=True)[1], pairs)


def _contracted(chain: ChainProblem, label: Ints, pairs: Ints) -> tuple[ChainProblem, Ints]:
    """Merge supernodes with one label or on a cycle of pairs; return the new number of each, too."""
    group, pairs = merge_cycles(label, relabelled(pairs, label))
    count = int(group.max()) + 1
    number = np.argsort(depth_first(_rows(pairs, count), _rows(pairs[:, ::-1], count)))
    pairs = relabelled(pairs, number)
    coarse = merged(chain, number[group])
    after, before = _rows(pairs, count), _rows(pairs[:, ::-1], count)
    return replace(coarse, successors=after, predecessors=before), number[group]


def _rows(pairs: Ints, count: int) -> Rows:
    return rows_of(pairs[:, 0], pairs[:, 1], count)


def costs_of(problem: SampleProblem, n: int, member: Ints, settings: Settings) -> BlockCosts:
    """Return the costs of blocks of `n` supernodes, given the supernode of every node, shape (N,)."""
    backward = problem.backward.astype(np.int64)
    pins, makes, cost = _half_nets(problem, 2 * member + backward, settings)
    half = np.array([h for row in pins for h in row], dtype=np.int64)
    owner = np.repeat(np.arange(len(pins)), [len(row) for row in pins])
    made = np.array([h == maker for row, maker in zip(pins, makes, strict=True) for h in row], dtype=bool)
    by_node = np.argsort(half // 2, kind="stable")
    same = problem.backward[problem.successors.owners()] == problem.backward[problem.successors.items]
    source, target = problem.successors.owners()[same], problem.successors.items[same]
    back = problem.backward[source]
    earlier, later = np.where(back, target, source), np.where(back, source, target)
    before = rows_of(later, earlier, problem.n)
    each = np.arange(problem.n)
    ordered = np.lexsort((np.where(problem.backward, -each, each), problem.backward))
    nodes = rows_of(member[ordered], ordered, n)
    return BlockCosts(
        work=_work(problem, n, member),
        size=np.bincount(member, problem.size, n).astype(np.float64),
        memory=problem.memory,
        pays=problem.pays,
        communication=COMMUNICATION_MODELS.index(problem.communication),
        net_start=rows_of(half // 2, owner, n).start,
        net=owner[by_node],
        backward_pin=half[by_node] % 2,
        makes=made[by_node],
        pins=np.array([len(row) for row in pins], dtype=np.int64),
        cost=np.array(cost, dtype=np.float64),
        node_start=nodes.start,
        node=nodes.items,
        before_start=before.start,
        before=before.items,
        time=problem.time.sum(axis=1),
        backward=backward,
    )


def _half_nets(
    problem: SampleProblem, half: Ints, settings: Settings
) -> tuple[list[tuple[int, ...]], list[int], list[float]]:
    """Return the nets between halves: pins, maker and cost of each; equal nets are merged."""
    nets, found = problem.nets, dict[tuple[int, tuple[int, ...]], float]()
    for e, cost in settings.watched(enumerate(nets.cost.tolist()), every=100):
        pins = tuple(sorted(set(half[nets.pins.row(e)].tolist())))
        if len(pins) > 1:
            key = int(half[nets.source[e]]), pins
            found[key] = found.get(key, 0.0) + cost
    return [pins for _, pins in found], [maker for maker, _ in found], list(found.values())


def _work(problem: SampleProblem, n: int, member: Ints) -> Floats:
    work = np.zeros((len(problem.count), 2, n))
    for k, rows in enumerate(problem.time):
        barred = ~problem.allowed[k] | (problem.count[k] == 0)
        for w, row in enumerate(rows):
            work[k, w] = np.bincount(member, row, n)
        work[k, 0, member[barred]] = np.inf
    return work
