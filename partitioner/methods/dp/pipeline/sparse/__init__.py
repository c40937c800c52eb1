"""The search for pipelines where a table of all sets of devices is too large to fill in time."""
