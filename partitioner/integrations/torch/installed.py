"""Whether torch is installed, and in a version whose private interfaces are known here."""

from __future__ import annotations

from importlib.util import find_spec

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable

TRAINING_VERSION = "2.13"


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
    if version.split(".")[:2] != TRAINING_VERSION.split("."):
        raise BackendUnavailable(
            f"torch {version}: {what} uses a private interface of torch {TRAINING_VERSION}: "
            f"pip install torch=={TRAINING_VERSION}.*{instead}"
        )
