"""The part of a machine's processors that other programs used while something was measured."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

MOST_FOREIGN = 0.1  # of all cores; what is measured beside more is not judged
IDLE = (3, 4)  # the fields of /proc/stat in which no program runs: idle, and waiting for a disk
STAT = Path("/proc/stat")


@dataclass(frozen=True)
class CpuClock:
    """The time at a moment, and the seconds for which all cores together ran programs until then.

    Parameters
    ----------
    wall
        Seconds of a clock that only goes forward.
    busy
        Seconds of all cores; None where the system does not tell.
    """

    wall: float
    busy: float | None

    @classmethod
    def now(cls) -> CpuClock:
        """Return the present moment."""
        return cls(monotonic(), _busy())

    def foreign(self, own: float) -> float | None:
        """Return the part of all cores that other programs have used since this moment; None if unknown.

        Parameters
        ----------
        own
            The seconds that the measured processes have used since this moment.
        """
        now = CpuClock.now()
        if self.busy is None or now.busy is None or now.wall <= self.wall:
            return None
        cores = os.cpu_count() or 1
        return max(0.0, now.busy - self.busy - own) / ((now.wall - self.wall) * cores)


def _busy() -> float | None:
    with suppress(OSError, ValueError):
        with STAT.open(encoding="ascii") as file:
            fields = [int(word) for word in file.readline().split()[1:9]]
        return sum(fields[i] for i in range(len(fields)) if i not in IDLE) / os.sysconf("SC_CLK_TCK")
    return None
