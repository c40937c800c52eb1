"""Functions named in tables, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def imported(place: str) -> Any:
    """Import a function, given as ``"module:function"``.

    Examples
    --------
    >>> imported("math:gcd")(12, 18)
    6
    """
    module, function = place.split(":")
    return getattr(import_module(module), function)
