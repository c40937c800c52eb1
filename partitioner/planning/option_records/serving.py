"""Options of serving: how long a sample may take where the most samples in flight are looked for."""

from __future__ import annotations

from partitioner.planning.option import SERVING, Option, with_term
from partitioner.planning.option_rules import LONGEST, number

LIMITED = with_term("max_time_per_sample", "objective capacity")
RECORDS = (
    Option(
        "max_time_per_sample",
        None,
        number(f"a positive number, at most {LONGEST:,}", lambda v: 0 < v <= LONGEST, optional=True),
        "let no device take longer than this for a sample, in the unit of the workload's times",
        SERVING,
        meaning="no limit",
        effect=LIMITED,
        metavar="TIME",
    ),
    Option(
        "max_slowdown",
        None,
        number(f"a number from 1 to {LONGEST:,}", lambda v: 1 <= v <= LONGEST, optional=True),
        "let no device take longer for a sample than this multiple of the least time that a plan with one "
        "sample in flight can have; 1: the most samples at the least time",
        SERVING,
        meaning="no limit",
        effect=LIMITED,
        metavar="X",
    ),
)
