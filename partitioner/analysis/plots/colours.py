"""Colours of passes, parts and devices, legible on light and on dark backgrounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from matplotlib.typing import ColorType

PASSES = {"F": "#4a90d9", "B": "#e8963a", "I": "#d9606a", "W": "#58a55c"}
PARTS = {"in": "#6f7f8f", "out": "#a58ac9", "sync": "#c8b02c"}
COMPUTE = PASSES["F"]
OVER = "#e2574c"
DEVICES = (
    *("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f"),
    *("#bcbd22", "#17becf", "#4040e0", "#7ee06e", "#d100d1", "#f2c80f", "#00806f", "#8fb8ff"),
)
SHAPES = (("o", "s"), ("^", "v"), ("D", "p"), ("P", "X"))


def device_look(number: int) -> tuple[str, str, str]:
    """Return the colour of a device, and the shapes of its forward and backward nodes.

    Colours repeat after 16 devices, with other shapes; colours and shapes repeat after 64 devices.

    Examples
    --------
    >>> device_look(0), device_look(16)
    (('#1f77b4', 'o', 's'), ('#1f77b4', '^', 'v'))
    """
    rounds, place = divmod(number, len(DEVICES))
    return DEVICES[place], *SHAPES[rounds % len(SHAPES)]


def ink() -> ColorType:
    """Return the style's colour of text."""
    from matplotlib import rcParams

    return cast("ColorType", rcParams["text.color"])


def mixed(colour: ColorType, other: ColorType, share: float) -> tuple[float, float, float]:
    """Return a mixture of two colours, with the fraction `share` of `other`."""
    from matplotlib.colors import to_rgb

    first, second = to_rgb(colour), to_rgb(other)
    red, green, blue = (a * (1 - share) + b * share for a, b in zip(first, second, strict=True))
    return red, green, blue


def on_top(colour: ColorType) -> ColorType:
    """Return the style's colour of text or of the background, whichever contrasts more with `colour`."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    candidates: list[ColorType] = [ink(), rcParams["figure.facecolor"]]
    return max(candidates, key=lambda other: abs(_luminance(to_rgb(other)) - _luminance(to_rgb(colour))))


def _luminance(rgb: tuple[float, float, float]) -> float:
    return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2]
