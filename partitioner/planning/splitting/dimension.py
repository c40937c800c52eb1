"""Dimensions along which an operation may be split, and the ids of the nodes that this adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.methods.placers.dpos_draft import CONCATENATE, PART, SPLIT, Draft
from partitioner.workload.graph import NodeId


@dataclass(frozen=True)
class Dimension:
    """A dimension of an operation's tensors, and the shares of its n sub-operations (FastT, Section 5.2).

    Parameters
    ----------
    name
        Part of the sub-operations' ids; not empty.
    divides_input
        Whether each gets its share of the inputs; else all of them.
    divides_parameters
        Whether each holds its share of the parameters; else a copy of them.
    divides_output
        Whether each makes its share of the output; else a partial result of full size.

    Raises
    ------
    WorkloadError
        If a field is not of its type.

    Examples
    --------
    >>> Dimension("channel", divides_input=False, divides_parameters=True).divides_output
    True
    """

    name: str
    divides_input: bool = True
    divides_parameters: bool = False
    divides_output: bool = True

    def __post_init__(self) -> None:
        flaws = [
            Flaw("dimension", name, shown(value), "must be True or False")
            for name, value in vars(self).items()
            if name != "name" and not isinstance(value, bool)
        ]
        if not isinstance(self.name, str) or not self.name:
            flaws.append(Flaw("dimension", "name", shown(self.name), "must be a text that is not empty"))
        if flaws:
            raise WorkloadError(flaws)


def names_of(
    ids: Sequence[NodeId], draft: Draft, splits: Mapping[int, tuple[Dimension, int]]
) -> tuple[NodeId, ...]:
    """Return the id of every task: that of its node, or a new one such as ``conv/batch/0of2``."""
    taken, names = set(map(str, ids)), []
    for node, role, i in zip(
        draft.tasks.node.tolist(), draft.role.tolist(), draft.number.tolist(), strict=True
    ):
        if role not in (SPLIT, PART, CONCATENATE):
            names.append(ids[node])
            continue
        dimension, count = splits[node]
        word = {SPLIT: f"split{i}", PART: f"{i}of{count}", CONCATENATE: "concatenate"}[role]
        names.append(unused(f"{ids[node]}/{dimension.name}/{word}", taken))
    return tuple(names)


def unused(name: str, taken: set[str]) -> str:
    """Return the name, or a similar one that is not taken, and mark it as taken."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name
