"""What the forward pass keeps for the backward pass, and which node keeps it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from partitioner.integrations.torch.graphs.grouping import Classes, OperationGroup
from partitioner.integrations.torch.graphs.operation import AtenOperation, Capture, Storage


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
