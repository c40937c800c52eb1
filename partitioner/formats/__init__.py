"""Readers of files: workloads, devices, constraints, plans, placements, timelines and pass tables."""
