"""Pictures are drawn without a window and closed after each test; slow tests draw them in a dark style."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, params=["default", pytest.param("dark_background", marks=pytest.mark.slow)])
def style(request: pytest.FixtureRequest) -> Iterator[str]:
    """The style in use."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    from matplotlib import pyplot, style

    pyplot.switch_backend("agg")
    with style.context(request.param):
        yield request.param
    pyplot.close("all")
