"""Times of nodes: by curves or a roofline for named devices, or measured ones where there are some."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from partitioner.base.argument_types import require_mapping
from partitioner.base.errors import OptionError, one_of, shown
from partitioner.estimation.measured import measured
from partitioner.estimation.named_devices import NamedDevice, named_device
from partitioner.estimation.operator_times import OperatorWork, operator_times
from partitioner.integrations.torch.graphs.grouping import BACKWARD, OperationGroup
from partitioner.workload.graph import Floats
from partitioner.workload.layer import ACCELERATOR

AnyDevice = str | NamedDevice
PLAIN = "float32"  # the type whose speed is taken for operations without arithmetic


def devices_by_kind(device: AnyDevice | Mapping[str, AnyDevice]) -> dict[str, NamedDevice]:
    """Return the figures of each kind of device; a single device is of kind ``"accelerator"``."""
    given = device if isinstance(device, Mapping) else {ACCELERATOR: device}
    return {kind: named_device(one) for kind, one in given.items()}


def estimated(
    groups: Sequence[OperationGroup], device: NamedDevice, dtype: str | None, efficiency: float | None
) -> Floats:
    """Return the time of each group: the sum over its operations, each in the type of its own numbers."""
    operations = [(i, op) for i, group in enumerate(groups) for op in group.operations]
    works = [
        OperatorWork(
            op.flops, op.bytes_in + op.bytes_out, op.parts, (dtype or op.dtype) if op.flops else PLAIN
        )
        for _, op in operations
    ]
    found = np.zeros(len(groups))
    np.add.at(found, [i for i, _ in operations], operator_times(works, device, efficiency))
    return found


def with_measured(times: Floats, groups: Sequence[OperationGroup], by_name: Mapping[str, float]) -> Floats:
    """Return the times with measured ones by the path of a module or, where there is no such module, by node.

    The time of a module is that of its forward pass, and with ``/backward`` after its path that of its
    backward pass. It is divided over the nodes of the module in proportion to the times given.

    Raises
    ------
    OptionError
        If a name is neither a node nor a module, or a node gets two times.
    WorkloadError
        If a time is not a number of at least 0.
    """
    require_mapping("times", by_name, "must be a mapping from nodes or modules to ms")
    names = {group.name: [i] for i, group in enumerate(groups)}
    found, taken = times.copy(), dict[int, str]()
    given = measured("times", list(by_name.values()), 1).tolist()
    for name, value in zip(by_name, given, strict=True):
        inside = [i for i, group in enumerate(groups) if _within(group, name)] or names.get(name, [])
        if not inside:
            raise OptionError(f"times: {shown(name)}: must be {one_of(name, names)}, or the path of a module")
        twice = next((i for i in inside if i in taken), None)
        if twice is not None:
            both = f"both {shown(taken[twice])} and {shown(name)}"
            raise OptionError(f"times: node {groups[twice].name} has a time from {both}: must be one of them")
        taken |= dict.fromkeys(inside, name)
        found[inside] = _divided(times[inside], value)
    return found


def _within(group: OperationGroup, name: str) -> bool:
    path = name.removesuffix(BACKWARD)
    return group.backward == name.endswith(BACKWARD) and f"{group.layer}.".startswith(f"{path}.")


def _divided(shares: Floats, value: float) -> Floats:
    total = shares.sum()
    return np.asarray(shares / total * value if total else np.full(len(shares), value / len(shares)))
