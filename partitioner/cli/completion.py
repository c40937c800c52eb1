"""Completion of the command line in shells, by argcomplete."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

ASKED = "_ARGCOMPLETE"  # the shell sets it where it asks a program for completions


def complete_if_asked(parser: argparse.ArgumentParser) -> None:
    """Write completions and end the process if a shell asks for them and argcomplete is installed."""
    if ASKED in os.environ:
        with suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)
