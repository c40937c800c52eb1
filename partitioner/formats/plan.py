"""Reading of plans from files."""

from __future__ import annotations

import os
from dataclasses import fields

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.base.files import path_name, read_json
from partitioner.formats.plan_fields import read_fields
from partitioner.formats.record import Record
from partitioner.results.plan import Plan

FIELDS = tuple(field.name for field in fields(Plan))


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Return the plan in a file that :meth:`partitioner.Plan.save` has written.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = read_fields(Record(read_json(path), "file", flaws), FIELDS, required=True)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    return Plan(**found)
