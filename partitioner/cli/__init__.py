"""The command line: one parser, one file a command."""

from partitioner.cli.command_line import main, run

__all__ = ["main", "run"]
