"""The options of methods that place operators one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitioner.base.errors import OptionError, shown
from partitioner.workload.transfers import DEFAULT_TRANSFERS, Transfers

if TYPE_CHECKING:
    from partitioner.problem.tasks import Tasks
    from partitioner.workload.graph import Bools, Floats

GROUPERS = ("none", "coplace")
EARLIEST_FINISH, EARLIEST_START, FILL = 0, 1, 2
CHOOSERS = {"earliest_finish": EARLIEST_FINISH, "earliest_start": EARLIEST_START, "fill": FILL}


@dataclass(frozen=True, eq=False)
class Choice:
    """The argument of a user's function that chooses the device of a task.

    Parameters
    ----------
    tasks
        All tasks and devices.
    task
        The number of the task to be placed.
    fits
        Shape (D,): whether the task may go to each device, by its group, the memory left and its kinds; at
        least one is True.
    start, finish
        Shape (D,): when the task would start and finish on each device; infinity where it does not fit.
    previous
        The device of the task placed before; 0 for the first one.
    """

    tasks: Tasks
    task: int
    fits: Bools
    start: Floats
    finish: Floats
    previous: int


@dataclass(frozen=True)
class Placer:
    """A list scheduler made of rules that the user chooses, for ``method="list"``.

    Parameters
    ----------
    priority
        The ready task with the largest priority is placed next, the first one in topological order among
        equals: a name of :data:`partitioner.methods.placers.ranks.PRIORITIES`, or a function that is
        given the tasks and returns the priority of each, shape (n,).
    choose
        The rule for the device of that task: a name of
        :data:`partitioner.methods.placing.CHOOSERS`, or a function that is given a
        :class:`partitioner.methods.placing.Choice` and returns the number of a device.
    insertion
        Whether a task may start in an idle slot between two others; else it starts after the last task of
        its device.

    Raises
    ------
    OptionError
        If a field has a wrong type.
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
        """Return the fields by name, for JSON."""
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
        Whether the placement is improved by local search.
    reserve_memory
        Whether the first node of a colour class reserves memory for the whole class; else every node takes
        its own memory when it is placed.
    grouper
        For Baechi's placers: ``"coplace"`` keeps a node with its only successor; ``"none"`` does not.
    fuse
        For Baechi's placers: whether edges inside groups are contracted.
    uniform
        For Baechi's m-TOPO: whether the memory used on a device is limited to an even share plus the largest
        colour class.
    sct_threshold
        For Baechi's m-SCT: an edge whose variable in the linear program is at most this leads to a favourite
        child.
    fusion_range, fusion_memory
        For Celeritas: the largest number of nodes in a cluster (R), and its largest memory (M) as a fraction
        of the smallest device's memory, or of the memory of all nodes if that is less.
    imbalance
        For graph partitioners: by what fraction the largest part may exceed the mean.
    placer
        For method ``list``: its rules.
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
