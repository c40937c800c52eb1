"""How a model is measured."""

from __future__ import annotations

import os
from dataclasses import dataclass

CPU = "cpu"
THREAD, ELAPSED = CLOCKS = ("thread", "elapsed")


@dataclass(frozen=True)
class ProfileOptions:
    """How a model is measured; :func:`profile` says what each field is."""

    device: str
    clock: str
    warm_up: int
    tolerance: float
    time_limit: float
    cache: str | os.PathLike[str] | None
    beside: int = 0
    accumulate: bool = False

    @property
    def manner(self) -> str:
        """What times depend on besides the graph and the machine, as a text."""
        beside = [f"{self.beside} beside"] if self.beside else []
        return ", ".join([self.clock, *beside, *(["accumulated"] if self.accumulate else [])])
