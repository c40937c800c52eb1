"""Measured times and memory of models of torch, and of transfers between devices; see `docs/profiling.md`."""
