"""Times of profiles that do not tell the passes apart."""

from __future__ import annotations

from partitioner.base.errors import OptionError, shown

BACKWARD_SHARE = 2 / 3  # a backward pass has twice the arithmetic of a forward pass


def split_passes(total: float, training: bool, share: float) -> tuple[float, float | None]:
    """Return the times of both passes of a layer; for inference that of the forward pass only.

    `share` is the part of the total that the backward pass takes.
    """
    return total * (1 - share), total * share if training else None


def check_passes(training: bool, share: float) -> None:
    """Raise if an option on the passes is not in its range.

    Raises
    ------
    OptionError
        Naming the option and its value.
    """
    if not isinstance(training, bool):
        raise OptionError(f"training = {shown(training)}: must be True or False")
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
        raise OptionError(f"backward_share = {shown(share)}: must be a number from 0 to 1")
