"""A model with its loss as one module."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from torch import nn

PREFIX = "model."


class Scored(nn.Module):  # type: ignore[misc]
    """A model whose output is its loss.

    Parameters
    ----------
    model
        The model.
    loss
        What makes a scalar of the model's output and further arguments.
    count
        The number of positional arguments that are the model's; those that follow are the loss's.
    """

    def __init__(self, model: Any, loss: Callable[..., Any], count: int) -> None:
        super().__init__()
        self.model = model
        self._loss = _free_name(model)
        setattr(self, self._loss, loss)
        self._count = count

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the loss."""
        return getattr(self, self._loss)(self.model(*args[: self._count], **kwargs), *args[self._count :])


def _free_name(model: Any) -> str:
    """Return the name of the loss, which no child of the model has."""
    taken = {name.partition(".")[0] for name, _ in (*model.named_modules(), *model.named_parameters())}
    return next(name for i in count() if (name := f"loss_{i}" if i else "loss") not in taken)


def in_model(path: str) -> bool:
    """Whether a module is the model or inside of it, by its path in the module with the loss.

    Examples
    --------
    >>> [in_model(path) for path in ("model.layers.3", "model", "loss", "")]
    [True, True, False, False]
    """
    return f"{path}.".startswith(PREFIX)


def path_in_model(path: str) -> str:
    """Return the path that a module has in the model alone.

    Examples
    --------
    >>> [path_in_model(path) for path in ("model.layers.3", "model", "loss")]
    ['layers.3', '', 'loss']
    """
    return f"{path}.".removeprefix(PREFIX).removesuffix(".")
