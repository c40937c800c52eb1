"""The terms of an evaluation: its options in addition to the workload and the solution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from partitioner.base.errors import OptionError, shown
from partitioner.evaluation.solution import Solution
from partitioner.workload.constraints import Constraints, require_constraints
from partitioner.workload.device_validation import LARGEST, is_amount
from partitioner.workload.devices import Devices
from partitioner.workload.in_flight import check_schedule
from partitioner.workload.transfers import Transfers
from partitioner.workload.virtual_stages.schedules import PLANNED


@dataclass(frozen=True)
class Terms:
    """The options of an evaluation, see :func:`partitioner.evaluate`.

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
    max_time_per_sample: float | None = None

    def __post_init__(self) -> None:
        limit, cpus, transfers = self.subgraphs_per_accelerator, self.limited_cpus, self.transfers
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise OptionError(f"subgraphs_per_accelerator = {shown(limit)}: must be an integer of at least 1")
        if not isinstance(cpus, bool):
            raise OptionError(f"limited_cpus = {shown(cpus)}: must be True or False")
        if transfers is not None and not isinstance(transfers, Transfers):
            raise OptionError(f"transfers = {shown(transfers)}: must be a partitioner.Transfers, or None")
        check_longest(self.max_time_per_sample)
        check_schedule("inference" if self.schedule is None else self.schedule, self.microbatches, PLANNED)
        require_constraints(self.constraints)

    @property
    def given(self) -> dict[str, Any]:
        """The fields that differ from their defaults."""
        return {name: value for name, value in vars(self).items() if value != DEFAULTS[name]}


def check_longest(value: object) -> None:
    """Refuse a limit of the time per sample that is neither None nor a positive number.

    Raises
    ------
    OptionError
        Naming the value.
    """
    if value is not None and not (is_amount(value) and value):
        rule = f"must be a positive number of at most {LARGEST:g}, or None"
        raise OptionError(f"max_time_per_sample = {shown(value)}: {rule}")


DEFAULTS = {field.name: field.default for field in fields(Terms)}


def check_terms(
    objective: str, known: Sequence[str], devices: Devices, solution: Solution, terms: Terms
) -> None:
    """Raise if a term, or a part of the solution, is given that the objective does not depend on.

    Parameters
    ----------
    objective
        The name of the objective, for the message.
    known
        The names of the terms and of the parts of solutions that the value depends on.
    devices, solution, terms
        What the caller has given.

    Raises
    ------
    OptionError
        Naming all terms and parts that the objective does not depend on.
    """
    parts = {
        "replicas": solution.replicas or None,
        "order": solution.order,
        "stage_of": solution.stage_of,
        "subgraphs": solution.subgraphs,
        "execution_order": solution.execution_order,
        "alternatives": solution.alternatives or None,
        "levels": devices.levels or None,
        "groups": devices.groups or None,
    }
    given = [*terms.given, *(name for name, value in parts.items() if value is not None)]
    foreign = [name for name in given if name not in (*known, "constraints", "split")]
    if foreign:
        names = ", ".join(foreign)
        used = ", ".join(name for name in known if name in (*DEFAULTS, *parts)) or "none of these"
        raise OptionError(f"{names}: must not be given for objective {objective!r}, which uses {used}")
