"""The name of the distribution that pip installs; it differs from the name that Python imports."""

from __future__ import annotations

DISTRIBUTION = "dnn-partitioner"


def remedy(extra: str) -> str:
    """Return the command that installs an extra of this package.

    Examples
    --------
    >>> remedy("plots")
    'pip install "dnn-partitioner[plots]"'
    """
    return f'pip install "{DISTRIBUTION}[{extra}]"'
