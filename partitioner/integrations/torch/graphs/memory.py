"""The memory of nodes: parameters, what is kept for the backward pass, what is needed only for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from partitioner.integrations.torch.graphs.grouping import Classes, OperationGroup
from partitioner.integrations.torch.graphs.operation import AtenOperation, Capture, Source, Storage


def holders(capture: Capture, groups: Sequence[OperationGroup]) -> dict[str, list[str]]:
    """Return for each source, by its path, the groups that read it, first reader first."""
    found: dict[str, list[str]] = {}
    for group in groups:
        for op in group.operations:
            for source in (capture.sources[name] for name in op.reads if name in capture.sources):
                names = found.setdefault(source.path, [])
                if group.name not in names:
                    names.append(group.name)
    return found


def held(capture: Capture, readers: Mapping[str, list[str]], kind: str) -> dict[str, list[Source]]:
    """Return the parameters or buffers that each group holds: each with its first reader, once."""
    found: dict[str, list[Source]] = {}
    for path, source in distinct(capture).items():
        if source.kind == kind and path in readers:
            found.setdefault(readers[path][0], []).append(source)
    return found


def distinct(capture: Capture) -> dict[str, Source]:
    """Return the sources by path, each once."""
    return {source.path: source for source in capture.sources.values()}


def shared(capture: Capture, readers: Mapping[str, list[str]], classes: Classes) -> dict[str, list[str]]:
    """Return the parameters of each group that a group of another colour class reads, too."""
    found: dict[str, list[str]] = {}
    for path, source in distinct(capture).items():
        names = readers.get(path, [])
        if source.kind == "parameter" and len({classes[name] for name in names}) > 1:
            for name in names:
                found.setdefault(name, []).append(path)
    return found


def loose(
    capture: Capture, groups: Sequence[OperationGroup], readers: Mapping[str, list[str]]
) -> dict[str, list[str]]:
    """Return the parameters and buffers that no group has below its path, by the group that reads them first.

    Such are those of modules that enclose several groups, and further names of tied ones. What nothing reads
    goes to the first group.
    """
    layers = {group.layer for group in groups}
    found: dict[str, list[str]] = {}
    for name, path in capture.names.items():
        around = name.split(".")
        if groups and layers.isdisjoint(".".join(around[:count]) for count in range(len(around))):
            found.setdefault(readers.get(path, [groups[0].name])[0], []).append(name)
    return found


def parameter_gradients(capture: Capture, groups: Sequence[OperationGroup]) -> dict[str, list[Source]]:
    """Return the parameters whose gradients each group finishes."""
    by_path = distinct(capture)
    return {
        group.name: [
            by_path[capture.gradients[op.name]] for op in group.operations if op.name in capture.gradients
        ]
        for group in groups
    }


def workspace(group: OperationGroup) -> int:
    """Return the most bytes that an operation of a group returns in memory of their own."""
    return max(op.bytes_out for op in group.operations)


class Tensors:
    """The memory of the tensors that operations read, by the name of what makes them.

    Parameters
    ----------
    capture
        The captured model.
    """

    def __init__(self, capture: Capture) -> None:
        self._of: dict[str, tuple[Storage, ...]] = {
            name: (source.storage,) for name, source in capture.sources.items()
        }
        self._of |= {op.name: op.outputs for op in capture.operations}
        lasting = {source.storage.key for source in capture.sources.values() if source.kind != "input"}
        lasting |= {memory.key for name in capture.updates for memory in self._of.get(name, ())}
        forward = [op.name for op in capture.operations if not op.backward]
        inputs = [name for name, source in capture.sources.items() if source.kind == "input"]
        memories = [memory for name in (*inputs, *forward) for memory in self._of[name]]
        self.passing = {memory.key: memory.nbytes for memory in memories if memory.key not in lasting}

    def read_by(self, op: AtenOperation) -> Iterator[Storage]:
        """Yield the memory of what an operation reads."""
        for name in op.reads:
            yield from self._of.get(name, ())


def stash(tensors: Tensors, groups: Sequence[OperationGroup], classes: Classes) -> dict[str, int]:
    """Return the bytes that each forward group keeps of a sample for the backward pass.

    Kept are the tensors of the forward pass, inputs of the model included, that an operation of the backward
    pass reads; parameters and buffers are there anyway. A tensor is kept once, by the first forward group
    that makes or reads it and whose class reads it in the backward pass.
    """
    near: dict[int, dict[str, None]] = {}
    kept: dict[int, set[str]] = {}
    for group in groups:
        for op in group.operations:
            for memory in tensors.read_by(op) if group.backward else (*tensors.read_by(op), *op.outputs):
                if memory.key not in tensors.passing:
                    continue
                if group.backward:
                    kept.setdefault(memory.key, set()).add(classes[group.name])
                else:
                    near.setdefault(memory.key, {})[group.name] = None
    found: dict[str, int] = {}
    for key, readers in kept.items():
        if key in near:
            name = next((one for one in near[key] if classes[one] in readers), next(iter(near[key])))
            found[name] = found.get(name, 0) + tensors.passing[key]
    return found
