"""How operators are placed one by one: what list scheduling is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitioner.base.errors import OptionError, shown
from partitioner.workload.transfers import DEFAULT_TRANSFERS, Transfers

if TYPE_CHECKING:
    from partitioner.methods.list_scheduling.choice import Choice
    from partitioner.problem.tasks import Tasks
    from partitioner.workload.graph import Floats

GROUPERS = ("none", "coplace")


@dataclass(frozen=True)
class Placer:
    """A list scheduler made of parts, for ``method="list"``.

    Parameters
    ----------
    priority
        Of the tasks that are ready the one with the largest comes next, the first in topological order
        among equals: a name of :data:`partitioner.methods.list_scheduling.ranks.PRIORITIES`, or a function
        that is given the tasks and returns shape (n,).
    choose
        The device of the next task: a name of :data:`partitioner.methods.list_scheduling.choice.CHOOSERS`,
        or a function that is given a :class:`partitioner.methods.list_scheduling.choice.Choice` and returns
        the number of a device.
    insertion
        Whether a task may start in an idle slot between two others; else only after its device's last one.

    Raises
    ------
    OptionError
        If a part is of another type.
    """

    priority: str | Callable[[Tasks], Floats] = "upward_rank"
    choose: str | Callable[[Choice], int] = "earliest_finish"
    insertion: bool = True

    def __post_init__(self) -> None:
        for name in ("priority", "choose"):
            part = getattr(self, name)
            if not (isinstance(part, str) or callable(part)):
                raise OptionError(f"{name} = {shown(part)}: must be a name or a function")
        if not isinstance(self.insertion, bool):
            raise OptionError(f"insertion = {shown(self.insertion)}: must be True or False")

    def as_dict(self) -> dict[str, object]:
        """The parts by name, for JSON."""
        return {
            "priority": getattr(self.priority, "__name__", self.priority),
            "choose": getattr(self.choose, "__name__", self.choose),
            "insertion": self.insertion,
        }


HEFT = Placer()


@dataclass(frozen=True)
class Placing:
    """Options of the methods that place operators one by one, see :func:`partitioner.solve`.

    Parameters
    ----------
    transfers
        How tensors travel.
    refine
        Improve the placement by local search?
    reserve_memory
        Whether the first node of a colour class reserves memory for all of them; else each takes its own.
    grouper
        Baechi's: ``"coplace"`` keeps a node with its only successor; ``"none"``.
    fuse
        Baechi's: contract edges inside groups?
    uniform
        Baechi's m-TOPO: fill no device beyond an even share and the largest colour class?
    sct_threshold
        Edges up to this value in the linear program of m-SCT lead to a favourite child.
    fusion_range, fusion_memory
        Celeritas: the most nodes of a cluster (R), and the most memory as a fraction of the smallest
        device's (M), or of what all nodes take if that is less.
    imbalance
        By how much the largest part may exceed the mean, for graph partitioners.
    placer
        The parts of method ``list``.
    """

    transfers: Transfers = DEFAULT_TRANSFERS
    refine: bool = False
    reserve_memory: bool = True
    grouper: str = "none"
    fuse: bool = False
    uniform: bool = True
    sct_threshold: float = 0.1
    fusion_range: int = 200
    fusion_memory: float = 0.25
    imbalance: float = 0.01
    placer: Placer = HEFT


USUAL = Placing()
