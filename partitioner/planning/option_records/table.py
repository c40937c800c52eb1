"""All options of solve by name: Python's checks, the command line and the documentation read them here."""

from __future__ import annotations

from partitioner.planning.option import Option
from partitioner.planning.option_records import limits, operators, pipelines, serving, wanted

OPTIONS: dict[str, Option] = {
    option.name: option
    for records in (wanted, limits, pipelines, serving, operators)
    for option in records.RECORDS
}
