"""Run the command line: ``python -m partitioner``."""

from partitioner.cli import run

run()
