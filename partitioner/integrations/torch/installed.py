"""Whether torch is installed, and in a version whose private interfaces are known here."""

from __future__ import annotations

from importlib.util import find_spec

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable

KNOWN_VERSIONS = ("2.13", "2.14", "2.15")  # with which the tests of this package pass


def require_torch() -> None:
    """Raise `BackendUnavailable` with the command that installs torch, if it is not installed."""
    if find_spec("torch") is None:
        raise BackendUnavailable(f"graphs of torch's models need torch: {remedy('torch')}")


def check_version(version: str, what: str = "training=True", instead: str = ", or training=False") -> None:
    """Raise `BackendUnavailable` if a version of torch is not one whose private interfaces are known here.

    Examples
    --------
    >>> check_version("2.13.0+cpu")
    """
    if ".".join(version.split(".")[:2]) not in KNOWN_VERSIONS:
        known = f"{', '.join(KNOWN_VERSIONS[:-1])} and {KNOWN_VERSIONS[-1]}"
        raise BackendUnavailable(
            f"torch {version}: {what} uses a private interface that is known of torch {known}: "
            f"pip install torch=={KNOWN_VERSIONS[-1]}.*{instead}"
        )
