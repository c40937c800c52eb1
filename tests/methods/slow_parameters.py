"""Parameters of tests that only a run of the slow tests takes."""

from __future__ import annotations

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """Return the values of one parameter set, marked slow."""
    return pytest.param(*values, marks=pytest.mark.slow)
