"""How many samples a stage holds at once: the public name of what :mod:`partitioner.in_flight` defines."""

from partitioner.in_flight import RULES, SCHEDULES, Held, check_schedule, held, stash

__all__ = ["RULES", "SCHEDULES", "Held", "check_schedule", "held", "stash"]
