"""The directions of passes: forward, backward, and the two halves of a backward pass."""

from __future__ import annotations

DIRECTIONS = "FBIW"
FORWARD, BACKWARD, INPUT, WEIGHT = range(4)
