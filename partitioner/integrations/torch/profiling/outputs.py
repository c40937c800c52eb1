"""The bytes that nodes hand on to other nodes of the same pass."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from partitioner.integrations.torch.graphs.grouping import OperationGroup
from partitioner.integrations.torch.graphs.operation import Capture


def output_bytes(
    capture: Capture, groups: Sequence[OperationGroup], returned: Collection[str]
) -> dict[str, int]:
    """Return the bytes that each group makes and another group of the same pass reads, or the model returns.

    A tensor and its views count once; what an operation writes into a tensor of another group counts nothing.
    """
    maker = {source.storage.key: "" for source in capture.sources.values()}
    nbytes: dict[int, int] = {}
    of_operation = {op.name: op.outputs for group in groups for op in group.operations}
    backward = {group.name: group.backward for group in groups}
    handed_on: set[int] = set()
    for group in groups:
        for op in group.operations:
            keys = [memory.key for name in op.reads for memory in of_operation.get(name, ())]
            keys = [key for key in keys if maker.get(key, group.name) not in ("", group.name)]
            handed_on.update(key for key in keys if backward[maker[key]] == group.backward)
            for memory in op.outputs:
                maker.setdefault(memory.key, group.name)
                nbytes[memory.key] = memory.nbytes
            if op.name in returned:
                handed_on.update(memory.key for memory in op.outputs)
    found: dict[str, int] = {}
    for key in handed_on:
        found[maker[key]] = found.get(maker[key], 0) + nbytes[key]
    return found
