"""Solvers of integer programs, which run in worker processes at the same time."""
