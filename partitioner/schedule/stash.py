"""The number of samples in flight: the public name of :mod:`partitioner.workload.in_flight`."""

from partitioner.workload.in_flight import RULES, SCHEDULES, Held, check_schedule, stash
from partitioner.workload.in_flight import samples_in_flight as held

__all__ = ["RULES", "SCHEDULES", "Held", "check_schedule", "held", "stash"]
