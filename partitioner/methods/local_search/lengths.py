"""The length of rounds of annealing."""

from __future__ import annotations

TRIES, LONGER = 6, 2  # rounds without better parts before rounds become longer, and the factor


class Length:
    """The number of moves in a round, which grows when several rounds find nothing better.

    Parameters
    ----------
    moves
        The moves of the first rounds.

    Examples
    --------
    >>> length = Length(10)
    >>> for better in [True] + TRIES * [False]:
    ...     length.learn(better)
    >>> length.moves
    20
    """

    def __init__(self, moves: int) -> None:
        self.moves, self._idle = moves, 0

    def learn(self, better: bool) -> None:
        """Update the length by whether the last round has found something better."""
        self._idle = 0 if better else self._idle + 1
        if self._idle == TRIES:
            self._idle, self.moves = 0, LONGER * self.moves
