"""Completion of the command line in shells, by argcomplete."""

from __future__ import annotations

import argparse
import os
from contextlib import suppress

ASKED = "_ARGCOMPLETE"  # the shell sets it where it asks a program for completions


def completing() -> bool:
    """Whether a shell asks for completions."""
    return ASKED in os.environ


def complete_if_asked(parser: argparse.ArgumentParser) -> None:
    """Write completions and end the process if a shell asks for them and argcomplete is installed."""
    if completing():
        with suppress(ImportError):
            import argcomplete

            argcomplete.autocomplete(parser)
