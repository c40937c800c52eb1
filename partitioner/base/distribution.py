"""The name under which pip knows this package, which is not the name that Python imports."""

from __future__ import annotations

DISTRIBUTION = "dnn-partitioner"


def remedy(extra: str) -> str:
    """Return the command that installs what an extra of the package needs.

    Examples
    --------
    >>> remedy("plots")
    'pip install "dnn-partitioner[plots]"'
    """
    return f'pip install "{DISTRIBUTION}[{extra}]"'
