"""How long rounds of annealing are."""

from __future__ import annotations

TRIES, LONGER = 6, 2  # rounds without better parts before rounds become longer, and by how much


class Length:
    """The moves of a round: more once rounds of a length find nothing more.

    Parameters
    ----------
    moves
        Of the first rounds.

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
        """Take in whether a round has found something better."""
        self._idle = 0 if better else self._idle + 1
        if self._idle == TRIES:
            self._idle, self.moves = 0, LONGER * self.moves
