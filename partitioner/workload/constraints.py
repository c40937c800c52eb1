"""A user's constraints on a plan: on which devices nodes run, and the number and size of stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from partitioner.base.argument_types import MANY, is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown

COUNT = f"an integer of at least 1 and at most {MANY:,}"
Range = tuple[int | None, int | None]
ANY: Range = (None, None)


@dataclass(frozen=True)
class Constraints:
    """Constraints on a plan, in addition to the devices' memory and number.

    A *pattern* selects nodes: it is the id of one node, or else a text with ``*``, ``?`` and ``[...]`` as in
    file names, which selects all nodes whose names match.

    Parameters
    ----------
    pin
        For a pattern the kind of device, or the device, that its nodes must be on. A name of both a kind and
        a device means the kind; ``kind:index``, such as ``"gpu:10"``, always means the device.
    forbid
        For a pattern the kinds of device that its nodes must not be on.
    together
        Lists of patterns; all nodes of a list share a device.
    nodes_per_stage, layers_per_stage
        Least and most nodes, and distinct layers, of every stage; None for no limit. Nodes without a layer
        do not count as a layer.
    stages
        How many stages there must be, not counting replicas; None for any number.
    use_all_devices
        Whether every device must be used.
    neighbours_only
        Whether only consecutive stages may exchange tensors, so that no edge skips a stage.

    Raises
    ------
    WorkloadError
        Naming every field and value that breaks a rule.

    Examples
    --------
    >>> Constraints(pin={"embedding*": "gpu"}, together=[["embedding", "head"]], stages=4).limited
    True
    """

    pin: Mapping[Any, str] = field(default_factory=dict)
    forbid: Mapping[Any, Sequence[str]] = field(default_factory=dict)
    together: Sequence[Sequence[Any]] = ()
    nodes_per_stage: Range = ANY
    layers_per_stage: Range = ANY
    stages: int | None = None
    use_all_devices: bool = False
    neighbours_only: bool = False

    def __post_init__(self) -> None:
        flaws = _shape_flaws(self) or _range_flaws(self)
        if flaws:
            raise WorkloadError(flaws)

    def __hash__(self) -> int:
        ranges = tuple(self.nodes_per_stage), tuple(self.layers_per_stage)
        flags = self.stages, self.use_all_devices, self.neighbours_only
        return hash(
            (frozenset(self.pin.items()), frozenset(self.forbid), len(self.together), *ranges, *flags)
        )

    @property
    def limited(self) -> bool:
        """Whether there are constraints on stages, not only on the devices of nodes."""
        limits = self.nodes_per_stage, self.layers_per_stage, self.stages
        return limits != (ANY, ANY, None) or self.use_all_devices or self.neighbours_only

    @property
    def empty(self) -> bool:
        """Whether there are no constraints."""
        return not (self.pin or self.forbid or self.together or self.limited)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as plain data for JSON."""
        return {
            entry.name: getattr(self, entry.name)
            for entry in fields(self)
            if getattr(self, entry.name) != getattr(NONE, entry.name)
        }


def require_constraints(value: object) -> None:
    """Raise if the option ``constraints`` is neither None nor :class:`Constraints`.

    Raises
    ------
    OptionError
        Naming the value.
    """
    if value is not None and not isinstance(value, Constraints):
        raise OptionError(f"constraints = {shown(value)}: must be a partitioner.Constraints, or None")


def _shape_flaws(demands: Constraints) -> list[Flaw]:
    rules = {
        "pin": (_is_pinning(demands.pin), "must be a mapping from a pattern to a kind or a device"),
        "forbid": (_is_forbidding(demands.forbid), "must be a mapping from a pattern to a list of kinds"),
        "together": (_is_lists(demands.together), "must be a list of lists of patterns"),
        "use_all_devices": (isinstance(demands.use_all_devices, bool), "must be True or False"),
        "neighbours_only": (isinstance(demands.neighbours_only, bool), "must be True or False"),
    }
    return [
        Flaw("constraints", name, shown(getattr(demands, name)), rule)
        for name, (sound, rule) in rules.items()
        if not sound
    ]


def _range_flaws(demands: Constraints) -> list[Flaw]:
    flaws = []
    if demands.stages is not None and not is_count(demands.stages):
        flaws.append(Flaw("constraints", "stages", shown(demands.stages), f"must be {COUNT}"))
    rule = f"must be a least and a most number, each None or {COUNT}, in this order"
    for name in ("nodes_per_stage", "layers_per_stage"):
        if not _is_range(getattr(demands, name)):
            flaws.append(Flaw("constraints", name, shown(getattr(demands, name)), rule))
        else:
            object.__setattr__(demands, name, tuple(getattr(demands, name)))
    return flaws


def _is_pattern(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_pinning(pin: object) -> bool:
    return isinstance(pin, Mapping) and all(_is_pattern(k) and isinstance(v, str) for k, v in pin.items())


def _is_forbidding(forbid: object) -> bool:
    return isinstance(forbid, Mapping) and all(
        _is_pattern(key) and _is_list(kinds) and all(isinstance(kind, str) for kind in kinds)
        for key, kinds in forbid.items()
    )


def _is_lists(together: Any) -> bool:
    return _is_list(together) and all(_is_list(each) and all(map(_is_pattern, each)) for each in together)


def _is_range(value: Any) -> bool:
    if not _is_list(value) or len(value) != 2 or not all(v is None or is_count(v) for v in value):
        return False
    least, most = value
    return least is None or most is None or bool(least <= most)


NONE = Constraints()
