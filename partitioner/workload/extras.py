"""What a graph keeps of its input although no solver reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from partitioner.base.argument_types import is_count
from partitioner.base.units import MS_PER_SECOND

MOST_ZERO = 3
TIME_UNITS = {"s": MS_PER_SECOND, "ms": 1.0, "us": 1e-3}  # milliseconds of each
# fields of a node that list others by their ids: those that read of it only what inputs determine, and those
# that read what is not contiguous
INPUTS_ALONE, STRIDED = "ofInputs", "strided"
LOOSE = "looseTensors"  # the field of a node that lists tensors of the model which are below no layer
SHARED = "sharedParameters"  # the field of a node that lists the parameters which other layers hold, too
TIES = "ties"  # the field of a graph for training with what its tied weights take


@dataclass(frozen=True)
class Extras:
    """Fields of the input that no solver reads, but for `zero`; they are kept and written back."""

    top: Mapping[str, Any] = field(default_factory=dict)
    nodes: Sequence[Mapping[str, Any]] = ()
    edges: Sequence[Mapping[str, Any]] = ()

    @property
    def time_unit(self) -> str:
        """The unit of all times, a key of :data:`TIME_UNITS`; empty if the field ``timeUnit`` gives none."""
        unit = self.top.get("timeUnit")
        return unit if isinstance(unit, str) and unit in TIME_UNITS else ""

    @property
    def zero(self) -> int:
        """What the copies of a stage divide: nothing (0), the optimizer's state (1), gradients too (2, 3)."""
        zero = self.top.get("zero", 0)
        return zero if is_count(zero, 0, MOST_ZERO) else 0


def ties_field(
    copies: Iterable[tuple[str, float, float, float]],
    exchanges: Mapping[tuple[str, str], float],
    *,
    counted: bool,
) -> dict[str, Any]:
    """Return the field of a graph that says what its tied weights take; empty if it has none.

    Parameters
    ----------
    copies
        For nodes that hold a further copy the bytes of its parameters, gradients and optimizer's state.
    exchanges
        The bytes of gradients of tied weights on the edges of the graph, once a batch.
    counted
        Whether the memory of the nodes has the copies in it.

    Examples
    --------
    >>> ties_field([("head", 4.0, 0.0, 0.0)], {}, counted=False)
    {'ties': {'counted': False, 'copies': [['head', 4.0, 0.0, 0.0]], 'exchanges': []}}
    """
    rows = [list(row) for row in copies if any(row[1:])]
    sent = [[source, target, nbytes] for (source, target), nbytes in exchanges.items()]
    return {TIES: {"counted": counted, "copies": rows, "exchanges": sent}} if rows or sent else {}
