"""Solvers of integer programs in worker processes, side by side."""
