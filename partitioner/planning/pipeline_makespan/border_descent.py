"""Local search of the borders between stages, by estimated makespans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from partitioner.planning.pipeline_makespan.stage_borders import StageBorders
from partitioner.planning.pipeline_makespan.stage_estimates import StageEstimates

TOLERANCE = 1e-9
MOST_ESTIMATES = 60_000  # of moved borders
SHAKES = 300  # times that borders are moved at random
SHAKEN = 3  # borders that are moved at random to leave a local optimum
Estimated = tuple[float, StageBorders]


@dataclass
class BorderDescent:
    """Moves of borders as long as the estimated makespan falls, from some starts and then at random.

    Parameters
    ----------
    estimates
        The estimates of makespans.
    sound
        Whether stages obey the rules of the call.
    over
        Whether the search must end.
    rng
        The source of random moves.
    """

    estimates: StageEstimates
    sound: Callable[[StageBorders], bool]
    over: Callable[[], bool]
    rng: np.random.Generator
    moves: int = 0

    def local_optima(self, starts: list[StageBorders]) -> Iterator[StageBorders]:
        """Yield stages that no move improves: from each start, then after random moves of the best ones."""
        best: Estimated | None = None
        for start in starts:
            found = self._descent(start)
            yield found[1]
            best = found if best is None or found[0] < best[0] else best
        for _ in range(SHAKES if best is not None else 0):
            if best is None or self.ended:
                return
            found = self._descent(best[1].shaken(self.rng, SHAKEN))
            if found[0] < best[0] * (1 - TOLERANCE) and self.sound(found[1]):
                best = found
                yield found[1]

    @property
    def ended(self) -> bool:
        """Whether the time is over, or the moves."""
        return self.moves >= MOST_ESTIMATES or self.over()

    def _descent(self, borders: StageBorders) -> Estimated:
        """Return the stages after moves of neighbouring borders, as long as one lowers the estimate."""
        value, going = self.estimates.makespan(borders.stage), True
        while going:
            going = False
            for move in borders.moves():
                if self.ended:
                    return value, borders
                moved = borders.moved(*move)
                if moved is None:
                    continue
                self.moves += 1
                found = self.estimates.makespan(moved.stage)
                if found < value * (1 - TOLERANCE) and self.sound(moved):
                    value, borders, going = found, moved, True
        return value, borders
