"""A training step of any placement of operators, with a process for each device; see `docs/placing.md`."""
