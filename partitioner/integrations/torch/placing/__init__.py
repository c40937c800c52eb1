"""Models of torch whose operators run on the devices of a plan; see `docs/placing.md`."""
