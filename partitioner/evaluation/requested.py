"""The options of an evaluation: of the right type, and only where they mean something.

Every function raises :class:`partitioner.OptionError`.
"""

from __future__ import annotations

from partitioner.errors import OptionError, shown
from partitioner.workload.constraints import require_constraints
from partitioner.workload.devices import Devices
from partitioner.workload.in_flight import check_schedule
from partitioner.workload.transfers import Transfers


def check_subgraphs(objective: str, limit: object, subgraphs: object, limited_cpus: object) -> None:
    """What is for latency alone."""
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise OptionError(f"subgraphs_per_accelerator = {shown(limit)}: must be an integer of at least 1")
    if not isinstance(limited_cpus, bool):
        raise OptionError(f"limited_cpus = {shown(limited_cpus)}: must be True or False")
    if objective != "latency" and (limit > 1 or subgraphs is not None or limited_cpus):
        words = "subgraphs_per_accelerator, subgraphs and limited_cpus"
        raise OptionError(f"{words} mean nothing for objective {shown(objective)}, only for 'latency'")


def check_extensions(
    objective: str,
    devices: Devices,
    constraints: object,
    schedule: object,
    microbatches: object,
    **others: object,
) -> None:
    """What is for pipelines alone, and constraints."""
    given = {"schedule": schedule, "microbatches": microbatches, **others, "levels": devices.levels or None}
    unknown = [name for name, value in given.items() if value is not None]
    levels_only = objective == "makespan" and unknown == ["levels"]
    if objective in ("gpipe", "latency", "makespan") and unknown and not levels_only:
        words = ", ".join(unknown)
        raise OptionError(f"{words}: mean nothing for objective {shown(objective)}, only for pipelines")
    check_schedule("inference" if schedule is None else schedule, microbatches)
    if objective == "batch" and microbatches is None:
        raise OptionError("microbatches = None: objective 'batch' needs the number of samples of a batch")
    require_constraints(constraints)


def check_operators(objective: str, transfers: object, execution_order: object) -> None:
    """What is for makespans alone."""
    if transfers is not None and not isinstance(transfers, Transfers):
        raise OptionError(f"transfers = {shown(transfers)}: must be Transfers")
    if objective != "makespan" and (transfers is not None or execution_order is not None):
        words = "transfers and execution_order mean nothing"
        raise OptionError(f"{words} for objective {shown(objective)}, only for 'makespan'")
