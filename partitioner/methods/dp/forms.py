"""Other forms of a problem that have its chains, and the way back from what is found in one.

- The turned problem has every precedence reversed, so that stages are placed from the last to the first.
- In the merged one, kinds of devices that differ in their names only are one kind: tables have fewer states.
- In the split one, kinds are divided by explicit group, so that all devices of a kind have the same links.
- In the one of blocks, runs of a long linear order are supernodes, so that it is cut only where that is
  cheap, or near cuts of a known chain.
- With r devices a stage, or on the fastest links, parts are those of the problem as they are.

Example: a chain {0}, {1, 2} of three supernodes is the chain {0, 1}, {2} of the turned problem.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np

from partitioner.methods.loads import part_numbers
from partitioner.methods.method import Outcome, Part, Settings
from partitioner.problem.arrays import Floats, Ints, rows_of
from partitioner.problem.pipeline import Pipeline
from partitioner.problem.precedence import relabelled
from partitioner.problem.problem import Nets, Problem
from partitioner.problem.variants import ChainProblem, PipelineProblem

MOST_BLOCKS = 3000
LATE_BLOCKS = 500  # if no time is left
AnyChain = TypeVar("AnyChain", bound=ChainProblem)
Piped = TypeVar("Piped", bound=PipelineProblem)
ChangedPipeline = Callable[[PipelineProblem, Pipeline], Pipeline]
ChangedFields = Callable[[PipelineProblem], dict[str, Any]]


@dataclass(frozen=True, eq=False)
class Form(Generic[AnyChain]):
    """A problem in another form; here one whose parts are those of the given problem as they are.

    Parameters
    ----------
    given, problem
        The problem, and its other form. What they are contracted to has the same relation.
    """

    given: AnyChain
    problem: AnyChain

    def outcome(self, found: Outcome) -> Outcome:
        """Return an outcome of the other form, or of its `coarser`, as one of the given problem."""
        form = self.of(found)
        return replace(found, problem=form.given, parts=found.parts and form.stages(found.parts))

    def of(self, found: Outcome) -> Self:
        """Return the two forms of the problem that an outcome is of: this one, or one contracted further."""
        form = self
        while found.problem is not form.problem and form.coarser is not None:
            form = form.coarser
        return form

    @property
    def coarser(self) -> Self | None:
        """The two forms of what the problem is contracted to; None if it is not."""
        given, problem = self.given.coarser, self.problem.coarser
        if given is None or problem is None:
            return None
        return replace(self, given=given, problem=problem)  # type: ignore[arg-type]  # Self of a TypeVar

    def stages(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Return stages of the other form as those of the given problem."""
        return parts


def with_pipelines(problem: Piped, change: ChangedPipeline, more: ChangedFields = lambda _: {}) -> Piped:
    """Return the problem, and all that it is contracted to, with other pipelines, the relaxed ones too.

    Parameters
    ----------
    problem
        The problem.
    change
        Returns the other pipeline of one of these problems, given that problem and its pipeline.
    more
        Returns what else is changed in one of these problems, by field.
    """
    light, coarser = problem.relaxed_pipeline, problem.coarser
    return replace(
        problem,
        **more(problem),
        pipeline=change(problem, problem.pipeline),
        relaxed_pipeline=light and change(problem, light),
        coarser=None if coarser is None else with_pipelines(coarser, change, more),
    )


def fields_on_kinds(problem: PipelineProblem, kind: Ints, count: Ints) -> dict[str, Any]:
    """Return the fields of the problem with a kind, of `count` devices, for each entry of `kind`."""
    return {
        "time": problem.time[kind],
        "allowed": problem.allowed[kind],
        "relaxed_allowed": problem.relaxed_allowed[kind],
        "count": count,
        "memory": problem.memory[kind],
        "transfer_factor": problem.transfer_factor[kind],
    }


class Turned(Form[PipelineProblem]):
    """The problem with every edge of precedence reversed."""

    def stages(self, parts: Sequence[Part]) -> list[Part]:
        """Return stages of the turned problem as those of the given one."""
        return turned_stages(parts, self.problem.n)


def turned_stages(stages: Sequence[Part], n: int) -> list[Part]:
    """Return stages of a problem of `n` supernodes as those of the turned problem, or the reverse."""
    return [replace(part, nodes=n - 1 - part.nodes[::-1]) for part in stages[::-1]]


def with_merged_kinds(
    solve: Callable[[ChainProblem, Settings], Outcome], problem: ChainProblem, settings: Settings
) -> Outcome:
    """Return the outcome of a method that is given identical kinds as one, with parts on the given kinds."""
    group = identical_kinds(problem)
    if len(np.unique(group)) == len(group):
        return solve(problem, settings)
    form = MergedKinds(problem, merged_kinds(problem, group), group)
    incumbent = settings.incumbent and [
        replace(part, kind=int(group[part.kind])) for part in settings.incumbent
    ]
    return form.outcome(solve(form.problem, replace(settings, incumbent=incumbent)))


@dataclass(frozen=True, eq=False)
class MergedKinds(Form[ChainProblem]):
    """A problem in which identical kinds are one; `group` has the class of every given kind, shape (K,)."""

    group: Ints

    def stages(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts on the given kinds."""
        return split_kinds(parts, self.group, self.given.count)


def identical_kinds(problem: ChainProblem) -> Ints:
    """Return a class for each kind: times, memory, transfers and what may run there are equal in a class."""
    numbers: dict[bytes, int] = {}
    found = []
    for k in range(len(problem.count)):
        figures = np.array([problem.memory[k], problem.transfer_factor[k]])
        rows = problem.time[k], problem.allowed[k], problem.relaxed_allowed[k], figures
        found.append(numbers.setdefault(b"".join(row.tobytes() for row in rows), len(numbers)))
    return np.array(found, dtype=np.int64)


def merged_kinds(problem: ChainProblem, group: Ints) -> ChainProblem:
    """Return the problem with one kind for each class, which has the devices of all its kinds."""
    first = np.unique(group, return_index=True)[1]
    return replace(
        problem,
        time=problem.time[first],
        allowed=problem.allowed[first],
        relaxed_allowed=problem.relaxed_allowed[first],
        memory=problem.memory[first],
        transfer_factor=problem.transfer_factor[first],
        count=np.bincount(group, problem.count).astype(np.int64),
        coarser=problem.coarser and merged_kinds(problem.coarser, group),
    )


def split_kinds(parts: Sequence[Part], group: Ints, count: Ints) -> list[Part]:
    """Return the parts on the kinds of each class, which take as many as they have devices, in their order.

    Examples
    --------
    >>> parts = [Part(0, np.array([v])) for v in range(3)]
    >>> [part.kind for part in split_kinds(parts, np.array([0, 1, 0]), np.array([1, 5, 2]))]
    [0, 2, 2]
    """
    left, found = count.copy(), []
    for part in parts:
        kind = int(np.flatnonzero((group == part.kind) & (left > 0))[0])
        left[kind] -= 1
        found.append(replace(part, kind=kind))
    return found


@dataclass(frozen=True, eq=False)
class SplitKinds(Form[PipelineProblem]):
    """A problem whose kinds are divided by explicit group: a kind for each group that has devices of it.

    Parameters
    ----------
    kind, first
        Shape (K',): the user's kind of each kind, and the number of its first device among those of the
        user's kind.
    """

    kind: Ints
    first: Ints

    def stages(self, parts: Sequence[Part]) -> list[Part]:
        """Return the parts with their devices: those of pinned supernodes, then the first free ones."""
        pinned = self.problem.pipeline.pinned
        fixed = [sorted({int(i) for v in part.nodes for i in pinned.row(v)}) for part in parts]
        taken = {(part.kind, i) for part, own in zip(parts, fixed, strict=True) for i in own}
        named = []
        for part, own in zip(parts, fixed, strict=True):
            room = range(int(self.problem.count[part.kind]))
            free = [i for i in room if (part.kind, i) not in taken][: part.replicas - len(own)]
            taken |= {(part.kind, i) for i in free}
            devices = tuple(int(self.first[part.kind]) + i for i in (*own, *free))
            named.append(replace(part, kind=int(self.kind[part.kind]), devices=devices))
        return named


def by_group(problem: PipelineProblem) -> SplitKinds:
    """Return a problem with explicit groups with a kind for each group and kind in it."""
    held = problem.pipeline.held
    group, kind = np.nonzero(held)
    first = (np.cumsum(held, axis=0) - held)[group, kind]

    def divided(whole: PipelineProblem) -> dict[str, Any]:
        home = _home(whole)
        here = (home[None, :] == -1) | (home[None, :] == group[:, None])
        fields = fields_on_kinds(whole, kind, whole.pipeline.held[group, kind])
        fields["allowed"] &= here  # arrays of its own
        fields["relaxed_allowed"] &= here | (not whole.lossless)
        return fields

    def pipeline(whole: PipelineProblem, given: Pipeline) -> Pipeline:
        return _divided_pipeline(whole, given, group, kind, first)

    return SplitKinds(problem, with_pipelines(problem, pipeline, divided), kind, first)


def _divided_pipeline(
    problem: PipelineProblem, pipeline: Pipeline, group: Ints, kind: Ints, first: Ints
) -> Pipeline:
    held = np.zeros((len(pipeline.held), len(kind)), dtype=np.int64)
    held[group, np.arange(len(kind))] = pipeline.held[group, kind]
    pinned, home = pipeline.pinned, _home(problem)
    owner, own_kind = pinned.owners(), problem.allowed.argmax(axis=0)
    begins = {(g, k): f for g, k, f in zip(group.tolist(), kind.tolist(), first.tolist(), strict=True)}
    shift = [begins.get((int(home[v]), int(own_kind[v])), 0) for v in owner]
    items = pinned.items - np.array(shift, dtype=np.int64)
    return replace(
        pipeline,
        held=held,
        bandwidth=pipeline.bandwidth[kind],
        message=pipeline.message[kind],
        group=pipeline.group[:, kind],
        pinned=rows_of(owner, items, len(pinned.start) - 1),
    )


def _home(problem: PipelineProblem) -> Ints:
    """Return the group of the devices that each supernode is pinned to, shape (n,).

    It is -1 for a supernode that is not pinned, and -2 for one that is pinned to several groups: a stage
    of one group cannot hold it.
    """
    pinned, held = problem.pipeline.pinned, problem.pipeline.held
    own_kind = problem.allowed.argmax(axis=0)
    home = np.full(problem.n, -1)
    for v, index in zip(pinned.owners().tolist(), pinned.items.tolist(), strict=True):
        group = int(np.searchsorted(np.cumsum(held[:, own_kind[v]]), index, side="right"))
        home[v] = group if home[v] in (-1, group) else -2
    return home


def within_groups(problem: PipelineProblem) -> Form[PipelineProblem]:
    """Return the form whose pipelines tables hold: kinds are divided by explicit group, if there are any."""
    return by_group(problem) if len(problem.pipeline.link) else Form(problem, problem)


def on_fastest_links(problem: PipelineProblem) -> Form[PipelineProblem]:
    """Return the problem without groups or levels, in which no pipeline costs more, whatever its devices."""
    if not len(problem.pipeline.link) and not len(problem.pipeline.slowdown):
        return Form(problem, problem)
    fastest = float(problem.pipeline.unknown_links[0].min()) if len(problem.pipeline.link) else 1.0

    def faster(whole: PipelineProblem) -> dict[str, Any]:
        return {"nets": whole.nets._replace(cost=whole.nets.cost * fastest)}

    return Form(problem, with_pipelines(problem, lambda _, given: _linked(given, fastest), faster))


def _linked(pipeline: Pipeline, fastest: float) -> Pipeline:
    none = np.zeros((0, 0))
    return replace(
        pipeline,
        held=none.astype(np.int64),
        link=none,
        group=pipeline.group[:0],
        slowdown=pipeline.slowdown[:0],
        bandwidth=pipeline.bandwidth / fastest,
    )


def with_replicas(problem: Piped, count: int | None) -> Piped:
    """Return the problem, and what it is contracted to, with `count` devices a stage; None: as it is."""
    if count is None:
        return problem
    return with_pipelines(problem, lambda _, given: replace(given, replicas=count, fewest=count))


def blocks_of(problem: Problem, order: Ints, cuts: Sequence[int], late: bool = False) -> Ints | None:
    """Return a division of a linear order into at most about `MOST_BLOCKS` runs of supernodes.

    Parameters
    ----------
    problem, order
        The supernodes and their order.
    cuts
        Places at which a known chain is cut; half of the blocks are single supernodes near these.
    late
        True for at most about `LATE_BLOCKS` instead.

    Returns
    -------
    Ints or None
        Shape (n,): the number of each supernode's block; None if the order is short enough without blocks.
    """
    n, most = problem.n, LATE_BLOCKS if late else MOST_BLOCKS
    if n <= most:
        return None
    half = most // 2
    opened = _open_cost(problem, order)
    window = np.arange(1, n) * half // n
    cheapest = np.lexsort((opened[1:n], window))
    first = np.unique(window[cheapest], return_index=True)[1]
    starts = np.zeros(n, dtype=bool)
    starts[1 + cheapest[first]] = True
    reach = half // max(2 * len(cuts), 1)
    for cut in cuts:
        starts[max(cut - reach, 1) : cut + reach + 1] = True
    allowed = problem.allowed[:, order]
    starts[1:] |= (allowed[:, 1:] != allowed[:, :-1]).any(axis=0)
    block = np.empty(n, dtype=np.int64)
    block[order] = np.cumsum(starts)
    return block


def merged(problem: AnyChain, block: Ints) -> AnyChain:
    """Return the problem with each block as one supernode, numbered in the order of the blocks."""
    count = int(block.max()) + 1
    time = np.array([[np.bincount(block, row, count) for row in rows] for rows in problem.time])
    allowed = np.array([np.bincount(block, ~row, count) == 0 for row in problem.allowed])
    pairs = relabelled(np.stack((problem.successors.owners(), problem.successors.items), axis=1), block)
    size: Floats = np.bincount(block, problem.size, count).astype(np.float64)
    blocks = replace(
        problem,
        time=time,
        size=size,
        allowed=allowed,
        successors=rows_of(pairs[:, 0], pairs[:, 1], count),
        predecessors=rows_of(pairs[:, 1], pairs[:, 0], count),
        nets=_merged_nets(problem, block, count),
        member=block[problem.member],
        relaxed_size=size,
        relaxed_allowed=allowed,
        coarser=None,
        output=np.zeros(0),
    )
    if isinstance(blocks, PipelineProblem):
        return replace(blocks, pipeline=blocks.pipeline.merged(block, count), relaxed_pipeline=None)
    return blocks


def split_blocks(stages: Sequence[Part], block: Ints) -> list[Part]:
    """Return the stages of blocks as stages of supernodes."""
    stage = part_numbers(stages, int(block.max()) + 1)
    members = rows_of(stage[block], np.arange(len(block)), len(stages))
    return [replace(part, nodes=members.row(number)) for number, part in enumerate(stages)]


def _open_cost(problem: Problem, order: Ints) -> Floats:
    """Return the total cost of the nets that a cut before each place of the order cuts, shape (n + 1,)."""
    place = np.empty(problem.n, dtype=np.int64)
    place[order] = np.arange(problem.n)
    nets = problem.nets
    change = np.zeros(problem.n + 2)
    if len(nets.cost):
        pins = place[nets.pins.items]
        np.add.at(change, np.minimum.reduceat(pins, nets.pins.start[:-1]) + 1, nets.cost)
        np.add.at(change, np.maximum.reduceat(pins, nets.pins.start[:-1]) + 1, -nets.cost)
    return np.asarray(np.cumsum(change)[: problem.n + 1])


def _merged_nets(problem: Problem, block: Ints, count: int) -> Nets:
    nets = problem.nets
    key, place = np.unique(nets.pins.owners() * count + block[nets.pins.items], return_inverse=True)
    read = np.ones(len(key), dtype=np.int64)
    np.minimum.at(read, place, nets.read)
    owner, pin = np.divmod(key, count)
    cut = np.bincount(owner, minlength=len(nets.cost)) > 1
    read = read[cut[owner]]
    owner, pin = (np.cumsum(cut) - 1)[owner[cut[owner]]], pin[cut[owner]]
    return Nets(
        pins=rows_of(owner, pin, int(cut.sum())),
        of_node=rows_of(pin, owner, count),
        cost=nets.cost[cut],
        source=block[nets.source[cut]],
        made=nets.made[cut],
        read=read,
    )
