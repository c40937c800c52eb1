"""The file of a picture, for the commands that write one."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable, OptionError
from partitioner.base.interruption import Interruption

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def picture_suffix(argument: str, path: str) -> str:
    """Return the end of the name of a picture's file, in lower case.

    Raises
    ------
    OptionError
        If it is none of the formats; `argument` is what named the file.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise OptionError(f"{argument} {path}: must end in one of {', '.join(FORMATS)}")
    return suffix


def drawn(picture: Callable[[], Axes], suffix: str, dark: bool = False) -> bytes:
    """Return the content of the picture's file, which is the same for the same input.

    Raises
    ------
    BackendUnavailable
        If matplotlib is not installed.
    """
    with Interruption() as interruption:  # compiled modules make an ImportError of an interrupted import
        try:
            import matplotlib
            from matplotlib import pyplot, style
        except ImportError as error:
            raise BackendUnavailable(f"pictures need matplotlib: {remedy('plots')}") from error
    if interruption.by_keyboard:
        raise KeyboardInterrupt
    pyplot.switch_backend("agg")
    content = io.BytesIO()
    styles = ["dark_background"] if dark else []
    with style.context([*styles, {"svg.hashsalt": "partitioner"}]):
        figure = picture().get_figure(root=True)
        assert isinstance(figure, matplotlib.figure.Figure)
        figure.savefig(content, format=suffix[1:], metadata=FORMATS[suffix])
        pyplot.close(figure)
    return content.getvalue()
