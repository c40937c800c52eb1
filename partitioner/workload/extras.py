"""What a graph keeps of its input although no solver reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from partitioner.base.units import MS_PER_SECOND

TIME_UNITS = {"s": MS_PER_SECOND, "ms": 1.0, "us": 1e-3}  # milliseconds of each
# fields of a node that list others by their ids: those that read of it only what inputs determine, and those
# that read what is not contiguous
INPUTS_ALONE, STRIDED = "ofInputs", "strided"
LOOSE = "looseTensors"  # the field of a node that lists tensors of the model which are below no layer
SHARED = "sharedParameters"  # the field of a node that lists the parameters which other layers hold, too


@dataclass(frozen=True)
class Extras:
    """Fields of the input that no solver reads; they are kept and written back."""

    top: Mapping[str, Any] = field(default_factory=dict)
    nodes: Sequence[Mapping[str, Any]] = ()
    edges: Sequence[Mapping[str, Any]] = ()

    @property
    def time_unit(self) -> str:
        """The unit of all times, a key of :data:`TIME_UNITS`; empty if the field ``timeUnit`` gives none."""
        unit = self.top.get("timeUnit")
        return unit if isinstance(unit, str) and unit in TIME_UNITS else ""
