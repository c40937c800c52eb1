"""Numbers of an explanation as text: times, values, memory, changes, lists of names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from partitioner.evaluation.text.figures import amount, figure, nearness, shortfall
from partitioner.evaluation.text.names import ranges
from partitioner.evaluation.text.tables import unit_of
from partitioner.results.serving import MAXIMISED

MOST_NAMES = 4
MOST_LETTERS = 40
SAME = 5e-4  # smaller changes are shown as 0.0 %


@dataclass(frozen=True)
class Phrases:
    """What sentences say of a plan whose value is a time, or a number of samples."""

    takes: str
    would: str
    better: str
    no_better: str
    improves: str
    fewer: str
    same: str


TIME = Phrases("takes", "would take", "takes less", "is no less", "lowers", "less", "as long as now")
ROOM = Phrases(
    *("has room for", "would have room for", "has room for more", "are no more than now", "raises"),
    *("fewer", "as many as now"),
)


@dataclass(frozen=True)
class Wording:
    """The units in which an explanation gives times and values.

    Parameters
    ----------
    objective
        The objective of the plan.
    pipelined
        Whether a makespan is that of a pipeline.
    time_unit
        The unit of times, empty if it is not known.
    """

    objective: str
    pipelined: bool
    time_unit: str

    @property
    def counted(self) -> bool:
        """Whether the value is a number of samples, of which more are better."""
        return MAXIMISED.get(self.objective, False)

    @property
    def phrases(self) -> Phrases:
        """What sentences say of the value."""
        return ROOM if self.counted else TIME

    def time(self, time: float) -> str:
        """Return a time with its unit.

        Examples
        --------
        >>> Wording("throughput", True, "ms").time(236.358)
        '236.4 ms'
        """
        return f"{figure(time)} {self.time_unit}".rstrip()

    def value(self, value: float) -> str:
        """Return a value of the objective with its unit.

        Examples
        --------
        >>> Wording("throughput", True, "ms").value(236.358)
        '236.358 ms per sample'
        """
        if self.counted:
            return f"{'any number of' if math.isinf(value) else f'{value:,.0f}'} samples in flight"
        number = f"{value:.6g} {self.time_unit}".rstrip()
        return f"{number}{unit_of(self.objective, self.pipelined)}"

    def proven(self, value: float, bound: float) -> bool:
        """Whether the bound says that no plan has a better value."""
        return bound <= value if self.counted else bound >= value * (1 - 1e-12)

    def near(self, value: float, bound: float) -> str:
        """Return how far a value is at most from the best one, as a phrase."""
        return shortfall(value, bound) if self.counted else nearness(value, bound)

    def changed(self, change: float | None) -> str:
        """Return by how much a value differs from that of the plan, see :func:`relative_change`.

        Examples
        --------
        >>> words = Wording("throughput", True, "ms")
        >>> words.changed(-0.132), words.changed(0.05), words.changed(0.00001)
        ('13.2% less', '5.0% more', 'as long as now')
        """
        if change is None:
            return "more"
        if abs(change) < SAME:
            return self.phrases.same
        return f"{abs(change):.1%} {self.phrases.fewer if change < 0 else 'more'}"


def relative_change(before: float, after: float) -> float | None:
    """Return by which fraction a value differs from the one before; None if that was 0 and the value is not.

    Examples
    --------
    >>> relative_change(4.0, 5.0), relative_change(0.0, 0.0), relative_change(0.0, 5.0)
    (0.25, 0.0, None)
    """
    if before:
        return after / before - 1
    return None if after else 0.0


def memory(size: float) -> str:
    """Return an amount of memory.

    Examples
    --------
    >>> memory(17179869184.0)
    '17.2GB'
    """
    return f"{amount(size)}B"


def share(part: float, whole: float) -> str:
    """Return a part as a percentage of a whole, 0 if that is 0.

    Examples
    --------
    >>> share(1.0, 8.0)
    '12.5%'
    """
    return f"{part / whole if whole else 0.0:.1%}"


def quoted(name: str) -> str:
    """Return a name in quotation marks, the end of a long one left out.

    Examples
    --------
    >>> quoted("head"), quoted("block" * 20)
    ("'head'", "'blockblockblockblockblockblockblockbl...'")
    """
    return f"'{name if len(name) <= MOST_LETTERS else name[: MOST_LETTERS - 3] + '...'}'"


def nodes(names: Sequence[str]) -> str:
    """Return how many nodes there are, and the names of the first ones.

    Examples
    --------
    >>> nodes(["a"]), nodes(["layer 1", "layer 2", "head"])
    ("node 'a'", '3 nodes (layer 1-2, head)')
    """
    if len(names) == 1:
        return f"node {quoted(names[0])}"
    short = ranges(names)
    more = ", ..." if len(short) > MOST_NAMES else ""
    return f"{len(names)} nodes ({', '.join(short[:MOST_NAMES])}{more})"


def listed(parts: Sequence[str]) -> str:
    """Return texts as a list in a sentence.

    Examples
    --------
    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
