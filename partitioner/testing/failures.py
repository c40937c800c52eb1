"""What a method can do wrong. All are ``AssertionError``, as test programs expect."""

from __future__ import annotations


class MethodFailure(AssertionError):  # noqa: N818 - a failed check, not an error of the program
    """A method does not do what every method must.

    Parameters
    ----------
    what
        What is wrong, as a sentence.
    line
        The call that asks the same question again.
    """

    def __init__(self, what: str, line: str) -> None:
        super().__init__(f"{what}\nreproduce it with {line}")
        self.what, self.line = what, line


class WrongPlan(MethodFailure):
    """A plan breaks a rule, has another shape than asked for, or does not have the value that it states."""


class WrongBound(MethodFailure):
    """A bound is above the least value."""


class WrongInfeasibility(MethodFailure):
    """A method claims to have proven that there is no plan, and there is one."""


class MissingPlan(MethodFailure):
    """A method finds no plan where there is one, and its record does not say that this may be."""


class LateEnd(MethodFailure):
    """A run goes on after its time limit, or after it was asked to stop."""


class NotRepeatable(MethodFailure):
    """Two deterministic runs with one seed give different plans."""


class UnexpectedFailure(MethodFailure):
    """A run ends with an error that no method may raise."""
