"""Edges between nodes, with the bytes of the tensors that they carry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from partitioner.integrations.torch.graphs.grouping import Classes, OperationGroup
from partitioner.integrations.torch.graphs.operation import Capture

ADDITION = "aten.add."
Carried = dict[tuple[str, str], dict[str, float]]


def edges_of(
    capture: Capture, groups: Sequence[OperationGroup], classes: Classes, microbatches: int
) -> dict[tuple[str, str], float]:
    """Return the bytes of a sample that each group sends to each other one.

    What a backward group reads of the forward pass was sent to the forward group of its class before, if that
    one reads it, too: the edge then leads from there, and nothing is sent. There is always an edge from the
    forward group to the backward group of the same operators. What is added to the gradient of a
    parameter is sent once in `microbatches`. What is the same for every sample is not sent again.
    """
    made = {op.name: (op, group) for group in groups for op in group.operations}
    lasting, sums = _lasting(capture), _gradient_sums(capture)
    carried: Carried = {pair: {} for pair in _mirrored(groups)}
    for group in groups:
        for op in group.operations:
            for read, maker in (made[name] for name in op.reads if name in made):
                if maker.name != group.name:
                    nbytes = read.sent / microbatches if op.name in sums else float(read.sent)
                    pair = maker.name, group.name
                    carried.setdefault(pair, {})[read.name] = 0.0 if read.name in lasting else nbytes
    sent = {pair: sum(tensors.values()) for pair, tensors in _kept(carried, groups, classes).items()}
    return _one_tensor(sent, classes)


def exchanged(
    capture: Capture, groups: Sequence[OperationGroup], classes: Classes
) -> dict[tuple[str, str], float]:
    """Return the bytes of gradients of parameters that each group adds to those of another colour class."""
    made = {op.name: (op, group.name) for group in groups for op in group.operations}
    sums = _gradient_sums(capture)
    found: dict[tuple[str, str], float] = {}
    for group in groups:
        for op in (one for one in group.operations if one.name in sums):
            for read, maker in (made[name] for name in op.reads if name in made):
                if classes[maker] != classes[group.name]:
                    found[maker, group.name] = found.get((maker, group.name), 0.0) + read.sent
    return found


def _gradient_sums(capture: Capture) -> set[str]:
    """Return the additions that sum up the gradient of one parameter."""
    found: set[str] = set()
    read: set[str] = set()
    for op in reversed(capture.operations):
        if ADDITION in op.target and op.backward and (op.name in capture.gradients or op.name in read):
            found.add(op.name)
            read.update(op.reads)
    return found


def _mirrored(groups: Sequence[OperationGroup]) -> Iterator[tuple[str, str]]:
    """Yield the names of each forward group and a backward group of the same operators."""
    forward: dict[str, str] = {}
    for group in groups:
        operator = group.operations[0].operator
        if not group.backward:
            forward |= dict.fromkeys((op.operator for op in group.operations), group.name)
        elif operator in forward:
            yield forward[operator], group.name


def _one_tensor(sent: Mapping[tuple[str, str], float], classes: Classes) -> dict[tuple[str, str], float]:
    """Return the bytes with those between groups of one class replaced: they are never sent.

    Edges out of a node carry one tensor if all of them have the same cost, so these get that of another one.
    """
    away: dict[str, float] = {}
    for (maker, reader), nbytes in sent.items():
        if classes[maker] != classes[reader]:
            away[maker] = max(nbytes, away.get(maker, 0.0))
    return {
        (maker, reader): nbytes if classes[maker] != classes[reader] else away.get(maker, nbytes)
        for (maker, reader), nbytes in sent.items()
    }


def _kept(carried: Carried, groups: Sequence[OperationGroup], classes: Classes) -> Carried:
    """Return the edges, those from another class to a backward group replaced where its own class has it."""
    partners: dict[str, list[str]] = {}
    backward = {group.name: group.backward for group in groups}
    for group in groups:
        if not group.backward:
            partners.setdefault(classes[group.name], []).append(group.name)
    found: Carried = {}
    for (maker, reader), tensors in carried.items():
        if classes[maker] == classes[reader]:
            found.setdefault((maker, reader), {})
        for name, nbytes in tensors.items():
            source = maker
            if backward[reader] and not backward[maker] and classes[maker] != classes[reader]:
                near = partners.get(classes[reader], [])
                source = next((one for one in near if name in carried.get((maker, one), {})), maker)
            found.setdefault((source, reader), {})[name] = nbytes
    return found


def edges_of_inputs(capture: Capture, groups: Sequence[OperationGroup]) -> dict[str, list[str]]:
    """Return for each forward group the others that read nothing of it but what the inputs determine."""
    determined = _determined(capture)
    return _readers({pair: determined.issuperset(names) for pair, names in _read_of(groups).items()})


def edges_of_strided(capture: Capture, groups: Sequence[OperationGroup]) -> dict[str, list[str]]:
    """Return for each forward group the others that read a tensor of it which is not contiguous."""
    strided = {op.name for op in capture.operations if op.strided}
    return _readers({pair: not strided.isdisjoint(names) for pair, names in _read_of(groups).items()})


def _read_of(groups: Sequence[OperationGroup]) -> dict[tuple[str, str], set[str]]:
    """Return the operations of a forward group that another one reads, by the names of both."""
    made = {op.name: group.name for group in groups if not group.backward for op in group.operations}
    found: dict[tuple[str, str], set[str]] = {}
    for group in groups:
        for op in group.operations if not group.backward else ():
            for name in op.reads:
                if made.get(name, group.name) != group.name:
                    found.setdefault((made[name], group.name), set()).add(name)
    return found


def _readers(chosen: Mapping[tuple[str, str], bool]) -> dict[str, list[str]]:
    """Return the readers of each maker, of the pairs that are chosen."""
    found: dict[str, list[str]] = {}
    for (maker, reader), wanted in chosen.items():
        if wanted:
            found.setdefault(maker, []).append(reader)
    return found


def _determined(capture: Capture) -> set[str]:
    """Return the inputs, buffers and operations that depend on no parameter, no chance and no write."""
    sources = {
        name
        for name, source in capture.sources.items()
        if source.kind in ("input", "buffer") and source.path not in capture.changed
    }
    others: set[int] = set()  # memory that something else writes into or returns
    while True:
        found = set(sources)
        for op in capture.operations:
            if not (op.random or op.backward) and found.issuperset(op.reads):
                found |= {op.name} if others.isdisjoint(one.key for one in op.outputs) else set()
        rest = {one.key for op in capture.operations if op.name not in found for one in op.outputs}
        if rest <= others:
            return found
        others |= rest


def _lasting(capture: Capture) -> set[str]:
    """Return the operations and buffers that depend on no input, no parameter, no chance and no write."""
    kept = {name: source for name, source in capture.sources.items() if source.path not in capture.changed}
    found = {name for name, source in kept.items() if source.kind == "buffer"}
    for op in capture.operations:
        if not op.random and found.issuperset(op.reads):
            found.add(op.name)
    return found
