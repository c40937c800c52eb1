"""The failures of a method; all are of type ``AssertionError``, which test programs expect."""

from __future__ import annotations


class MethodFailure(AssertionError):  # noqa: N818 - a failed check, not an error of the program
    """A method fails a check that every method must pass.

    Parameters
    ----------
    what
        What is wrong, as a sentence.
    line
        The call that reproduces the failure.
    """

    def __init__(self, what: str, line: str) -> None:
        super().__init__(f"{what}\nreproduce it with {line}")
        self.what, self.line = what, line


class WrongPlan(MethodFailure):
    """A plan breaks a rule, does not have the requested shape, or does not have the value that it states."""


class WrongBound(MethodFailure):
    """A bound is above the least value."""


class WrongInfeasibility(MethodFailure):
    """A method reports that the workload is infeasible, but there is a plan."""


class MissingPlan(MethodFailure):
    """A method finds no plan although there is one, and `may_miss` is not set in its record."""


class LateEnd(MethodFailure):
    """A run does not end soon after its time limit or a request to stop."""


class NotRepeatable(MethodFailure):
    """Two deterministic runs with one seed give different plans."""


class UnexpectedFailure(MethodFailure):
    """A run ends with an error that no method may raise."""
