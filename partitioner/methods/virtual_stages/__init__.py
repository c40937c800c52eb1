"""Pipelines with several stages on a device: exact programs, and local search with a bound."""
