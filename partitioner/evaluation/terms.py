"""What a solution is evaluated under, in addition to the workload and the solution itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from partitioner.base.errors import OptionError, shown
from partitioner.evaluation.solution import Solution
from partitioner.workload.constraints import Constraints, require_constraints
from partitioner.workload.devices import Devices
from partitioner.workload.in_flight import check_schedule
from partitioner.workload.transfers import Transfers


@dataclass(frozen=True)
class Terms:
    """What a solution is evaluated under, see :func:`partitioner.evaluate`.

    Raises
    ------
    OptionError
        If a field is of another type or out of its range.

    Examples
    --------
    >>> Terms(schedule="1f1b").given
    {'schedule': '1f1b'}
    """

    subgraphs_per_accelerator: int = 1
    limited_cpus: bool = False
    schedule: str | None = None
    microbatches: int | None = None
    constraints: Constraints | None = None
    split: str | None = None
    transfers: Transfers | None = None

    def __post_init__(self) -> None:
        limit, cpus, transfers = self.subgraphs_per_accelerator, self.limited_cpus, self.transfers
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise OptionError(f"subgraphs_per_accelerator = {shown(limit)}: must be an integer of at least 1")
        if not isinstance(cpus, bool):
            raise OptionError(f"limited_cpus = {shown(cpus)}: must be True or False")
        if transfers is not None and not isinstance(transfers, Transfers):
            raise OptionError(f"transfers = {shown(transfers)}: must be Transfers")
        check_schedule("inference" if self.schedule is None else self.schedule, self.microbatches)
        require_constraints(self.constraints)

    @property
    def given(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return {name: value for name, value in vars(self).items() if value != DEFAULTS[name]}


DEFAULTS = {field.name: field.default for field in fields(Terms)}


def check_terms(
    objective: str, known: Sequence[str], devices: Devices, solution: Solution, terms: Terms
) -> None:
    """Refuse what is given and means nothing to an objective.

    Parameters
    ----------
    objective
        Its name, for the message.
    known
        The parts of solutions and terms that its value depends on.
    devices, solution, terms
        What is given.

    Raises
    ------
    OptionError
        Naming all that means nothing.
    """
    parts = {
        "replicas": solution.replicas or None,
        "order": solution.order,
        "subgraphs": solution.subgraphs,
        "execution_order": solution.execution_order,
        "levels": devices.levels or None,
    }
    given = [*terms.given, *(name for name, value in parts.items() if value is not None)]
    foreign = [name for name in given if name not in (*known, "constraints", "split")]
    if foreign:
        words = ", ".join(foreign)
        knows = ", ".join(name for name in known if name in (*DEFAULTS, *parts)) or "none of these"
        raise OptionError(f"{words}: mean nothing for objective {objective!r}, which knows {knows}")
