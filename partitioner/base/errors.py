"""The errors that this package raises: bad input, no solution, no time, no backend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

SHOWN_FLAWS = 20


@dataclass(frozen=True)
class Flaw:
    """One broken rule of the input.

    Parameters
    ----------
    where
        What holds the value: ``"node 7"``, ``"edge 3 -> 4"``, ``"file"``, ``"devices"``.
    field
        The field's name, as the user wrote it; empty if `where` as a whole breaks the rule.
    value
        The value that breaks the rule, as a text; empty if there is none to show.
    rule
        What is allowed, such as ``"must be an integer"``.
    """

    where: str
    field: str
    value: str
    rule: str

    def __str__(self) -> str:
        subject = f"{self.field} = {self.value}" if self.field and self.value else self.field
        return ": ".join(part for part in (self.where, subject or self.value, self.rule) if part)


def shown(value: object, width: int = 60) -> str:
    """Return a value as a text of at most `width` characters, for an error message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = "a very large integer"
    except RecursionError:
        text = "a deeply nested value"
    except Exception:  # a class may have any __repr__
        text = f"a value of type {type(value).__name__}"
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= width else text[: width - 3] + "..."


def one_of(value: object, known: Iterable[str]) -> str:
    """Return the known words as a rule for `value`, with the most similar one if `value` looks misspelled.

    Examples
    --------
    >>> one_of("chian", ("chain", "convex", "free"))
    "one of chain, convex, free; did you mean 'chain'?"
    """
    words = list(known)
    return f"one of {', '.join(words)}{nearest(value, words)}"


def nearest(value: object, known: Sequence[str]) -> str:
    """Return a question that names the known word most similar to `value`; empty if none is similar."""
    near = get_close_matches(value, known, 1) if isinstance(value, str) else []
    return f"; did you mean {near[0]!r}?" if near else ""


def plain_name(name: str) -> str:
    """Return the name of a field without what two spellings of it may differ in."""
    return name.replace("_", "").replace("-", "").lower()


class PartitionerError(Exception):
    """The base of every error that this package raises on purpose."""


class WorkloadError(PartitionerError):
    """The input breaks a rule; every broken rule that was found is listed.

    Parameters
    ----------
    flaws
        The broken rules, in the order of the input.
    source
        The file's name, if the input came from a file.
    """

    def __init__(self, flaws: Sequence[Flaw], source: str | None = None) -> None:
        super().__init__(tuple(flaws), source)
        self.flaws = tuple(flaws)
        self.source = source

    def __str__(self) -> str:
        prefix = f"{self.source}: " if self.source else ""
        lines = [f"{prefix}{flaw}" for flaw in self.flaws[:SHOWN_FLAWS]]
        hidden = len(self.flaws) - SHOWN_FLAWS
        return "\n".join([*lines, f"{prefix}... and {hidden} more"] if hidden > 0 else lines)


class OptionError(PartitionerError, ValueError):
    """An argument of a call is not one of the values it may take."""


class InfeasibleError(PartitionerError):
    """No placement obeys the limits; the message says which limit cannot be met."""

    look_for_remedies: Callable[[], tuple[str, ...]] | None = None

    def remedies(self) -> tuple[str, ...]:
        """Return sentences on how much memory is missing, and which options would make the workload fit.

        They are looked for when this is called, for some seconds; there are none if nothing was found, or
        memory is not what is missing.
        """
        return () if self.look_for_remedies is None else self.look_for_remedies()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.args  # without the workload that remedies are tried on


class DoesNotFitError(WorkloadError, InfeasibleError):
    """Nodes that must be together are larger than the memory of every device that may run them.

    The workload is sound, and no placement of it obeys the limits: it is both errors.
    """


class NoPlanFound(PartitionerError):  # noqa: N818 - the name is part of the public contract
    """The method ended within its limits without a plan and without a proof that none exists."""


class BackendUnavailable(PartitionerError):  # noqa: N818 - the name is part of the public contract
    """The requested solver or package is not installed, or cannot run the method."""


class ContradictionError(PartitionerError):
    """The evaluator computes another value for a plan than the method claims: a defect, please report it."""
