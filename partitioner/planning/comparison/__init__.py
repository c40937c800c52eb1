"""Comparisons of methods on one workload, and of schedules for one plan."""
