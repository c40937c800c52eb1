"""A smaller problem whose least value is a lower bound: light supernodes are left out, heavy nets joined.

Leaving out any set of supernodes raises no load: their time is gone, and nets have fewer pins. Every chain of
the whole is one of the rest, if what comes after another still does. So the least value of the rest is a
lower bound, and a close one if what is left out is light.

Let W be the cost of the nets of u and v alone, R that of all other nets of u, and t the time of u; u is in
stage S and v in stage T. If u moves to T on kind k, with f the time that a transfer of cost 1 takes,

    load(T) changes by at most  t_k + f_k (R - W),       load(S)  by at most  f (R - W) - t,

and no other load rises. The chain stays one if v is a successor of u and all others come after v, or v is a
predecessor of u and all others come before v. So if t + f R <= f W on every kind that may run v, and
f R <= f W + t on every one that may run u, some best chain holds u and v in one stage, and they become one
supernode, with what lies between them. Where u takes 1 and reads a tensor that costs 2, and v alone reads its
result of cost 4: 1 + 2 <= 4.

Both hold for largest loads of devices that transfer and process in turn and have memory for everything. The
first also holds for pipelines with a schedule: with fewer supernodes no pass takes longer. There a light one
with a before it and b behind still counts in each stage that holds both a and b (:attr:`Reduced.between`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from partitioner.methods.dp.forms import AnyChain, merged, split_blocks
from partitioner.methods.loads import part_numbers
from partitioner.methods.method import Part
from partitioner.problem.arrays import Bools, Floats, Ints, rows_of
from partitioner.problem.measure import Measure
from partitioner.problem.orders import depth_first
from partitioner.problem.precedence import ancestors, merge_cycles, relabelled
from partitioner.problem.problem import Nets
from partitioner.problem.variants import ChainProblem, PipelineProblem


@dataclass(frozen=True, eq=False)
class Reduced:
    """A problem without its light supernodes and with others joined.

    Parameters
    ----------
    problem
        The smaller problem; its least value is a lower bound on that of the whole.
    whole
        The whole problem.
    kept
        Shape (n,): which supernodes are not left out.
    block
        Shape (kept,): the supernode of the smaller problem that each of them is in.
    """

    problem: ChainProblem
    whole: ChainProblem
    kept: Bools
    block: Ints

    def stages_of(self, parts: Sequence[Part]) -> list[Part]:
        """Return stages of the smaller problem as stages of the whole, see :meth:`stage_of`."""
        stage = self.stage_of(part_numbers(split_blocks(parts, self.block), len(self.block)))
        return [replace(part, nodes=np.flatnonzero(stage == i)) for i, part in enumerate(parts)]

    def stage_of(self, kept: Ints) -> Ints:
        """Return the stage of every supernode, shape (n,), by those of the ones that are kept.

        What was left out joins the first stage that reads it, or else the last one that it reads from.
        """
        stage, stages = np.full(self.whole.n, -1), int(kept.max(initial=0)) + 1
        stage[self.kept] = kept
        out = np.flatnonzero(~self.kept).tolist()
        for v in reversed(out):
            readers = stage[self.whole.successors.row(v)]
            stage[v] = readers[readers >= 0].min(initial=stages)
        for v in out:
            if stage[v] == stages:
                stage[v] = stage[self.whole.predecessors.row(v)].max(initial=0)
        return stage

    @cached_property
    def between(self) -> Ints:
        """The supernodes that are left out and come between two kept ones, with these; shape (m, 3).

        The one before and the one behind are numbered as in the smaller problem, in which nothing is joined.
        They are those next to it. Stages that hold both hold the supernode, too.
        """
        before, number = ancestors(self.whole.predecessors.lists()), np.cumsum(self.kept) - 1
        np.fill_diagonal(before, False)
        out = np.flatnonzero(~self.kept)
        early, late = before[out] & self.kept, before.T[out] & self.kept
        last = self.whole.n - 1 - early[:, ::-1].argmax(axis=1)
        found = np.stack((out, number[last], number[late.argmax(axis=1)]), axis=1)
        return np.asarray(found[early.any(axis=1) & late.any(axis=1)])


def can_be_reduced(problem: ChainProblem) -> bool:
    """Whether the bound of a smaller problem holds, as it does for plain loads where memory is no limit."""
    plain = problem.pipeline is None and problem.measure is Measure.LARGEST_LOAD and problem.lossless
    roomy = bool((problem.memory[problem.count > 0] >= problem.size.sum()).all())
    return plain and roomy and problem.communication == "sequential"


def reduced(problem: ChainProblem, lightest: float) -> Reduced:
    """Return the problem without the lightest supernodes, the others joined where a best chain has them so.

    Parameters
    ----------
    problem
        A problem that can be reduced.
    lightest
        What the supernodes that are left out take together at most, their nets included.
    """
    kept = _heavy(problem, lightest)
    rest = problem if kept.all() else _without(problem, ~kept)
    block = np.arange(rest.n)
    smaller, size = rest, rest.n + 1
    while smaller.n < size:
        size = smaller.n
        block = _numbered(smaller, joined_by_heavy_nets(smaller))[block]
        smaller = merged(rest, block)
    return Reduced(smaller, problem, kept, block)


def left_out(problem: AnyChain, share: float, kept: Bools, shared: bool = False) -> tuple[AnyChain, Reduced]:
    """Return the problem without the lightest supernodes, and how it was made; no others are joined.

    Parameters
    ----------
    problem
        The problem.
    share
        The part of the work that they take at most.
    kept
        Shape (n,): those which are never among the lightest.
    shared
        Whether stages may share the transfers of nets. Nets that lose a supernode cost nothing then, since
        another stage might pay for them.

    Examples
    --------
    >>> from partitioner.problem.contract import contract
    >>> from partitioner import DeviceKind, Devices, Graph
    >>> graph = Graph.from_arrays({"gpu": [5.0, 1.0, 94.0]}, [(0, 1), (1, 2)])
    >>> problem = contract(graph, Devices((DeviceKind("gpu", 2),)))
    >>> rest, fewer = left_out(problem, 0.02, np.array([False] * 3))
    >>> rest.n, fewer.between.tolist()
    (2, [[1, 0, 1]])
    """
    weight, nets = _weights(problem), problem.nets
    out = ~all_but_lightest(np.where(kept, np.inf, weight), share * weight.sum())
    lose = np.bincount(nets.pins.owners(), out[nets.pins.items], len(nets.cost)) > 0
    cost = np.where(lose & shared, 0.0, nets.cost)
    rest = _without(replace(problem, nets=nets._replace(cost=cost)), out)
    return rest, Reduced(rest, problem, ~out, np.arange(rest.n))


def _heavy(problem: ChainProblem, lightest: float) -> Bools:
    """Return which supernodes are kept, shape (n,), where the lightest are left out, but not all."""
    weight = _weights(problem)
    weight[np.flatnonzero(weight == weight.max())[-1]] = np.inf
    return all_but_lightest(weight, lightest)


def _weights(problem: ChainProblem) -> Floats:
    """Return the least time of each supernode with its nets, shape (n,)."""
    present = problem.count > 0
    time = np.where(present[:, None], problem.work(), np.inf).min(axis=0)
    return np.asarray(time + problem.transfer_factor[present].max() * _moved(problem))


def all_but_lightest(weight: Floats, most: float) -> Bools:
    """Return which are left without the lightest, which weigh at most `most` together; both shape (n,).

    Examples
    --------
    >>> all_but_lightest(np.array([5.0, 1.0, np.inf, 2.0]), 3.0).tolist()
    [True, False, True, False]
    """
    order = np.argsort(weight, kind="stable")
    left = np.ones(len(weight), dtype=bool)
    left[order[np.cumsum(weight[order]) <= most]] = False
    return left


def _moved(problem: ChainProblem) -> Floats:
    """Return the cost of all nets of each supernode, shape (n,)."""
    nets = problem.nets
    return np.bincount(nets.pins.items, nets.cost[nets.pins.owners()], problem.n).astype(np.float64)


def _without(problem: AnyChain, out: Bools) -> AnyChain:
    """Return the problem without some supernodes; what came after another still does."""
    kept = np.flatnonzero(~out)
    number = np.cumsum(~out) - 1
    pairs = np.array([*_direct(problem, out)], dtype=np.int64).reshape(-1, 2)
    pairs = number[pairs]
    rest = replace(
        problem,
        time=np.ascontiguousarray(problem.time[:, :, kept]),
        size=problem.size[kept],
        allowed=problem.allowed[:, kept],
        successors=rows_of(pairs[:, 0], pairs[:, 1], len(kept)),
        predecessors=rows_of(pairs[:, 1], pairs[:, 0], len(kept)),
        nets=_nets_without(problem, out),
        member=np.arange(len(kept)),
        relaxed_size=problem.relaxed_size[kept],
        relaxed_allowed=problem.relaxed_allowed[:, kept],
        coarser=None,
        output=np.zeros(0),
    )
    if isinstance(rest, PipelineProblem):
        return replace(rest, pipeline=rest.pipeline.taken(kept), relaxed_pipeline=None)
    return rest


def _direct(problem: ChainProblem, out: Bools) -> Iterator[tuple[int, int]]:
    """Yield the pairs of kept supernodes that follow each other with no kept one between them."""
    reached = ancestors(problem.predecessors.lists()).T
    for v in np.flatnonzero(~out).tolist():
        left = reached[v] & ~out
        left[v] = False
        while left.any():
            after = int(left.argmax())  # the lowest number comes first
            yield v, after
            left &= ~reached[after]


def _nets_without(problem: ChainProblem, out: Bools) -> Nets:
    """Return the nets without some pins, and those with two at least.

    A lost producer is the first pin, which sends where it had received. A net is left out where a transfer
    would change to another pass: that of a stage which receives it for a lost pin that reads it earlier than
    those that stay, or that of one which sends in another pass than it had received.
    """
    nets, owner, number = problem.nets, problem.nets.pins.owners(), np.cumsum(~out) - 1
    items, count, in_turn = nets.pins.items, len(nets.cost), problem.communication == "sequential"
    stays, reads = ~out[items], items != nets.source[owner]
    first, lost = np.full(count, 2), reads & ~stays  # after both passes where none is lost
    np.minimum.at(first, owner[lost], nets.read[lost])
    sent = ~out[nets.source][owner] | (in_turn & (nets.read == nets.made[owner]))
    changed = stays & (~sent | (reads & (nets.read > first[owner])))
    cut = (np.bincount(owner[stays], minlength=count) > 1) & ~np.isin(np.arange(count), owner[changed])
    inside = stays & cut[owner]
    owner, pin = (np.cumsum(cut) - 1)[owner[inside]], number[items[inside]]
    pins = rows_of(owner, pin, int(cut.sum()))
    source = np.where(out[nets.source[cut]], pins.items[pins.start[:-1]], number[nets.source[cut]])
    of_node = rows_of(pin, owner, int((~out).sum()))
    return Nets(pins, of_node, nets.cost[cut], source, nets.made[cut], nets.read[inside])


def _numbered(problem: ChainProblem, label: Ints) -> Ints:
    """Return the class of each supernode; those on a cycle are one, and numbers are a topological order."""
    _, label = np.unique(label, return_inverse=True)
    edges = np.stack((problem.successors.owners(), problem.successors.items), axis=1)
    group, pairs = merge_cycles(label, relabelled(edges, label))
    count = int(group.max(initial=-1)) + 1
    after, before = (rows_of(pairs[:, i], pairs[:, 1 - i], count) for i in (0, 1))
    return np.asarray(np.argsort(depth_first(after, before))[group])


def joined_by_heavy_nets(problem: ChainProblem) -> Ints:
    """Return a class for each supernode, shape (n,); those of one class are together in some best chain.

    No supernode is in two pairs, so that all pairs hold at once; ask again for the problem of the classes.
    """
    found, total = np.arange(problem.n), _moved(problem)
    before = ancestors(problem.predecessors.lists())
    paired: set[int] = set()
    for (one, other), cost in sorted(_between(problem.nets).items(), key=lambda item: -item[1]):
        for u, v in ((one, other), (other, one)):
            free = u not in paired and v not in paired
            if free and _pays(problem, u, v, cost, total[u] - cost) and _next_to(problem, u, v, before):
                found[u] = v
                paired |= {u, v}
    return found


def _between(nets: Nets) -> dict[tuple[int, int], float]:
    """Return the cost of the nets of two supernodes alone, by these."""
    found: dict[tuple[int, int], float] = {}
    for pins, cost in zip(nets.pins.lists(), nets.cost.tolist(), strict=True):
        if len(pins) == 2:
            pair = (min(pins), max(pins))
            found[pair] = found.get(pair, 0.0) + cost
    return found


def _pays(problem: ChainProblem, u: int, v: int, between: float, rest: float) -> bool:
    """Whether no load rises if u moves to the stage of v."""
    present = problem.count > 0
    there, here = (present & problem.allowed[:, node] for node in (v, u))
    time, factor = problem.time[:, :, u].sum(axis=1), problem.transfer_factor
    enters = (time + factor * rest <= factor * between)[there].all()
    leaves = (factor * rest <= factor * between + time)[here].all()
    return bool(problem.allowed[there, u].all() and enters and leaves)


def _next_to(problem: ChainProblem, u: int, v: int, before: Bools) -> bool:
    """Whether all other successors of u come after v, which is one, or all other predecessors before v."""
    for neighbours, reached in ((problem.successors, before.T), (problem.predecessors, before)):
        row = neighbours.row(u)
        if v in row:
            return bool(reached[v, row].all())
    return False
