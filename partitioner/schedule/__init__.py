"""Pipeline schedules in time and memory."""

from partitioner.schedule.simulation import simulate
from partitioner.schedule.table import Table
from partitioner.schedule.timeline import Operation, Timeline

__all__ = ["Operation", "Table", "Timeline", "simulate"]
