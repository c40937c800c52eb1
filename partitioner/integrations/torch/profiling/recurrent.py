"""The LSTM of a CPU in a captured graph, which torch captures in part as other operators than it runs."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from partitioner.integrations.torch.graphs.operation import Capture

LAYER = "aten.mkldnn_rnn_layer.default"
WORKSPACE = 3  # the result that the backward pass reads
OTHER = (
    "torch captures LSTMs behind the first one as other operators than a CPU runs in training: "
    "their times are too high and their memory too low"
)


def as_trained(node: Any) -> Callable[..., Any]:
    """Return the function that a node calls; an LSTM is to make its workspace if the backward pass reads it.

    The operator makes the workspace only where gradients are recorded.
    """
    target: Callable[..., Any] = node.target
    read = any(user.target is operator.getitem and user.args[1] == WORKSPACE for user in node.users)
    return partial(_recording, target) if str(target) == LAYER and read else target


def _recording(target: Callable[..., Any], *args: Any) -> Any:
    with torch.enable_grad():
        return target(*args)


def notes_on_recurrence(capture: Capture, training: bool) -> list[str]:
    """Return a note if a captured model has an LSTM that is trained on a CPU."""
    return [OTHER] if training and any(op.target == LAYER for op in capture.operations) else []
