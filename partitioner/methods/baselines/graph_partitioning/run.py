"""The run of a partitioner in a process of its own, where it can be stopped, crash or print."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from partitioner.methods.method import Settings

SHOWN = 200  # last characters of an error output that a note shows


class Ended(Exception):  # noqa: N818 - an end, not an error of the user's
    """Raised when a partitioner ends without parts, with the stop reason and a note for the user."""

    def __init__(self, stop_reason: str, note: str) -> None:
        super().__init__(note)
        self.stop_reason, self.note = stop_reason, note


def run(name: str, words: Sequence[str], settings: Settings) -> None:
    """Run a program without a shell until it ends or the deadline has passed.

    Raises
    ------
    Ended
        If the program does not end in time, or fails.
    """
    left = settings.seconds_left
    try:
        if left is not None and left <= 0:
            raise subprocess.TimeoutExpired(words, left)
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        raise Ended("time_limit", f"{name} did not end within the time limit") from None
    if done.returncode != 0:
        said = " ".join(done.stderr.split())[-SHOWN:]
        raise Ended(settings.stop_reason, f"{name} ended with code {done.returncode}: {said}")
