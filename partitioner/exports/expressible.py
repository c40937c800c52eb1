"""The constraints under which a tool can express every plan."""

from __future__ import annotations

from partitioner.base.argument_types import check_word
from partitioner.base.errors import OptionError, shown
from partitioner.exports.writers import TARGETS
from partitioner.workload.constraints import FORWARD_ONLY, TRAINING_ONLY, Constraints


def expressible(to: str, *, kind: str | None = None) -> Constraints:
    """Return the constraints under which a tool can express every plan.

    ``solve(..., split="chain", constraints=expressible("megatron"))`` then finds the best plan among those,
    with its proof; what they cost is the difference to the value without them. For accelerate, llama.cpp and
    onnx every split will do, for the others only a chain.

    Parameters
    ----------
    to
        The name of the writer, see :func:`partitioner.export`.
    kind
        The kind of device to use; needed if there are several and the tool takes one only.

    Raises
    ------
    OptionError
        If the name or the kind is none.

    Examples
    --------
    >>> expressible("accelerate").as_dict()
    {'whole': ('modules', 'ties'), 'no_replicas': True}
    >>> expressible("vllm", kind="gpu").pin
    {'*': 'gpu'}
    """
    check_word("to", to, TARGETS)
    if kind is not None and not isinstance(kind, str):
        raise OptionError(f"kind = {shown(kind)}: must be the name of a kind of device, or None")
    target = TARGETS[to]
    parts = {
        "modules": not target.anywhere,
        "ends": target.blocks,
        "ties": not (target.ties or target.traced),
        "layer_ties": target.blocks,
        "training_ties": target.traced,
    }
    edges = TRAINING_ONLY if target.traced else FORWARD_ONLY
    return Constraints(
        pin={} if kind is None else {"*": kind},
        whole=tuple(name for name, wanted in parts.items() if wanted),
        neighbours_only=edges if target.line else False,
        own_memory=target.own_memory,
        one_kind=target.one_kind,
        no_replicas=True,
        in_order=target.traced,
    )
