"""Import of functions that tables name, at the time when they are called."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def imported(place: str) -> Any:
    """Return the function of a text ``"module:function"``; import its module if need be.

    Examples
    --------
    >>> imported("math:gcd")(12, 18)
    6
    """
    module, function = place.split(":")
    return getattr(import_module(module), function)
