"""A user's constraints on a plan: on which devices nodes run, and the number and size of stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from partitioner.base.argument_types import MANY, is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown

COUNT = f"an integer of at least 1 and at most {MANY:,}"
WHOLE = ("modules", "ends", "ties", "layer_ties", "training_ties")
FORWARD_ONLY, TRAINING_ONLY = "forward", "training"
EDGES = "'forward' or 'training'"
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
        Whether only consecutive stages may exchange tensors, so that no edge skips a stage. With
        ``"forward"``, backward tensors do not count, nor do those that depend on no parameter;
        ``"training"`` is the same for graphs with backward nodes, and nothing for others.
    whole
        What must be on one device: ``"modules"``: the nodes of each layer, with the backward nodes that
        belong to it; ``"ends"``: what comes before the numbered layers of the model, and what comes after
        them; ``"ties"``: the nodes that hold a shared parameter; ``"layer_ties"``: the same for parameters
        that a numbered layer holds; ``"training_ties"``: as ``"ties"``, in graphs with backward nodes.
    own_memory
        Whether all nodes must be on devices with a memory of their own, which pay for transfers.
    one_kind
        Whether the devices in question must all be of one kind with a memory of its own. It does not choose
        the kind: `pin` must if there are several.
    no_replicas
        Whether no stage may be on several devices.
    equal_replicas
        Whether all stages must have the same number of devices, and of copies, as Megatron and torchtitan run
        them.
    in_order
        Whether each stage of a chain has consecutive modules, in the order in which the graph begins them.
        A module that is interrupted by others, as one that is called twice, must not be the first of a stage.

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
    neighbours_only: bool | str = False
    whole: Sequence[str] = ()
    own_memory: bool = False
    one_kind: bool = False
    no_replicas: bool = False
    in_order: bool = False
    equal_replicas: bool = False

    def __post_init__(self) -> None:
        flaws = _shape_flaws(self) or _range_flaws(self)
        if flaws:
            raise WorkloadError(flaws)
        object.__setattr__(self, "whole", tuple(self.whole))

    def __hash__(self) -> int:
        ranges = tuple(self.nodes_per_stage), tuple(self.layers_per_stage)
        flags = self.stages, self.use_all_devices, self.neighbours_only, self.whole, self.one_kind
        return hash(
            (frozenset(self.pin.items()), frozenset(self.forbid), len(self.together), *ranges, *flags)
        )

    @property
    def limited(self) -> bool:
        """Whether there are constraints on stages, not only on the devices of nodes."""
        limits = self.nodes_per_stage, self.layers_per_stage, self.stages
        return limits != (ANY, ANY, None) or self.use_all_devices or bool(self.neighbours_only)

    @property
    def empty(self) -> bool:
        """Whether there are no constraints."""
        nodes = self.pin, self.forbid, self.together, self.whole
        flags = self.own_memory, self.one_kind, self.no_replicas, self.in_order, self.equal_replicas
        return not (any(nodes) or self.limited or any(flags))

    @property
    def for_chains(self) -> bool:
        """Whether they mean something else to a chain than to other splits."""
        return bool(self.neighbours_only) or self.in_order

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
        "neighbours_only": (_is_neighbours(demands.neighbours_only), f"must be True, False, {EDGES}"),
        "whole": (_is_whole(demands.whole), f"must be a list of {', '.join(WHOLE)}"),
        "own_memory": (isinstance(demands.own_memory, bool), "must be True or False"),
        "one_kind": (isinstance(demands.one_kind, bool), "must be True or False"),
        "no_replicas": (isinstance(demands.no_replicas, bool), "must be True or False"),
        "in_order": (isinstance(demands.in_order, bool), "must be True or False"),
        "equal_replicas": (isinstance(demands.equal_replicas, bool), "must be True or False"),
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


def _is_neighbours(value: object) -> bool:
    return isinstance(value, bool) or (isinstance(value, str) and value in (FORWARD_ONLY, TRAINING_ONLY))


def _is_whole(value: Any) -> bool:
    return _is_list(value) and all(isinstance(each, str) and each in WHOLE for each in value)


def _is_range(value: Any) -> bool:
    if not _is_list(value) or len(value) != 2 or not all(v is None or is_count(v) for v in value):
        return False
    least, most = value
    return least is None or most is None or bool(least <= most)


NONE = Constraints()
