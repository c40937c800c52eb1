"""Numbers of an explanation as text: times, values, memory, changes, lists of names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from partitioner.results.figures import amount, figure
from partitioner.results.names import ranges
from partitioner.results.tables import unit_of

MOST_NAMES = 4
MOST_LETTERS = 40
SAME = 5e-4  # smaller changes are shown as 0.0 %


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
        number = f"{value:.6g} {self.time_unit}".rstrip()
        return f"{number}{unit_of(self.objective, self.pipelined)}"


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


def changed(change: float) -> str:
    """Return by how much a value differs from another one.

    Examples
    --------
    >>> changed(-0.132), changed(0.05), changed(0.00001)
    ('13.2% less', '5.0% more', 'as long as now')
    """
    if abs(change) < SAME:
        return "as long as now"
    return f"{abs(change):.1%} {'less' if change < 0 else 'more'}"


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
