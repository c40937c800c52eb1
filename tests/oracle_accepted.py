"""An exhaustive oracle: every plan that the evaluator accepts, of a tiny workload.

Stages take any devices of a kind, in any groups and levels, and stand in any order. The judge is the
evaluator alone; nothing of the methods is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, permutations, product
from typing import Any, NamedTuple

from partitioner import Devices, Evaluation, Graph, WorkloadError, evaluate
from partitioner.evaluation.shape import SHAPES

Counts = tuple[int, ...]


class Accepted(NamedTuple):
    """A plan that breaks no rule."""

    stages: tuple[tuple[str, ...], ...]
    part: tuple[int, ...]
    order: list[str] | None
    found: Evaluation


def accepted(
    graph: Graph,
    devices: Devices,
    objective: str = "throughput",
    *,
    split: str = "chain",
    replicas: int = 1,
    ordered: bool = False,
    apart: Sequence[str] = (),
    **terms: Any,
) -> Iterator[Accepted]:
    """Yield every plan of a split that the evaluator accepts, but for the names of equal devices.

    Parameters
    ----------
    graph, devices, objective
        The workload, and what the evaluator computes.
    split
        The shape that the placement must have.
    replicas
        The most devices of a stage.
    ordered
        Whether the order of the stages is a part of the plan, so that every order is tried.
    apart
        Devices that differ from all others, such as those that a constraint names.
    **terms
        Further arguments of the evaluator.
    """
    classes = equal_devices(devices, apart)
    for part in partitions(len(graph)):
        count = max(part) + 1
        for stages in layouts(devices, classes, count, replicas):
            placement = {node: stages[p][0] for node, p in zip(graph.ids, part, strict=True)}
            copies = {first: more for first, *more in stages if more}
            for order in permutations(range(count)) if ordered else (None,):
                terms["order"] = None if order is None else [stages[s][0] for s in order]
                found = judged(graph, devices, placement, objective, split, copies, terms)
                if found is not None:
                    yield Accepted(tuple(stages), part, terms["order"], found)


def judged(
    graph: Graph,
    devices: Devices,
    placement: Mapping[Any, str],
    objective: str,
    split: str,
    copies: Mapping[str, Sequence[str]],
    terms: Mapping[str, Any],
) -> Evaluation | None:
    """Return what the evaluator finds; None if it refuses the plan or the plan has another shape."""
    try:
        found = evaluate(graph, devices, placement, objective, replicas=copies or None, split=split, **terms)
    except WorkloadError:
        return None
    fine = found.feasible and SHAPES.index(found.shape.name) <= SHAPES.index(split)
    return found if fine else None


def partitions(n: int) -> Iterator[tuple[int, ...]]:
    """Yield all partitions of n nodes, as the number of each node's part; parts are numbered as they come."""

    def grown(part: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(part) == n:
            yield part
            return
        for p in range(max(part, default=-1) + 2):
            yield from grown((*part, p))

    yield from grown(())


def equal_devices(devices: Devices, apart: Sequence[str] = ()) -> list[list[str]]:
    """Return the devices by kind and smallest group; each of those that are set apart is alone."""
    classes: dict[Any, list[str]] = {}
    for kind in devices.kinds:
        for i in range(kind.count):
            name = kind.device(i)
            key = name if name in apart else (kind.name, _group(devices, kind.name, i))
            classes.setdefault(key, []).append(name)
    return list(classes.values())


def _group(devices: Devices, kind: str, index: int) -> int:
    """Return the number of the smallest group of a device."""
    if devices.levels:
        return index // max(1, devices.levels[0].size(kind))
    ends = 0
    for number, group in enumerate(devices.groups):
        ends += group.size(kind)
        if index < ends:
            return number
    return 0


def layouts(
    devices: Devices, classes: Sequence[Sequence[str]], count: int, replicas: int
) -> Iterator[list[tuple[str, ...]]]:
    """Yield the devices of `count` stages, at most `replicas` each and all of one kind."""
    kinds = [_kind(devices, members[0]) for members in classes]
    for taken in product(*(_shares(len(members), count, replicas) for members in classes)):
        stages: list[tuple[str, ...]] = [()] * count
        sorts: list[set[str]] = [set() for _ in range(count)]
        for members, kind, shares in zip(classes, kinds, taken, strict=True):
            borders = [sum(shares[:s]) for s in range(count + 1)]
            for s, (begin, end) in enumerate(pairwise(borders)):
                stages[s] += tuple(members[begin:end])
                sorts[s] |= {kind} if end > begin else set()
        if all(len(sort) == 1 for sort in sorts) and all(len(stage) <= replicas for stage in stages):
            yield stages


def _shares(size: int, count: int, replicas: int) -> list[Counts]:
    """Return how many of `size` equal devices each stage may take."""
    every = product(range(min(size, replicas) + 1), repeat=count)
    return [shares for shares in every if sum(shares) <= size]


def _kind(devices: Devices, name: str) -> str:
    at = devices.kind_of(name)
    assert at is not None
    return devices.kinds[at[0]].name
