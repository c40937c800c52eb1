"""Pipelines ranked by their simulated makespan."""
