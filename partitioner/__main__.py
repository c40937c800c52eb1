"""``python -m partitioner``."""

from partitioner.cli import run

run()
