"""The record of an option, and where an option has an effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partitioner.planning.option_rules import Rule
from partitioner.planning.request import Request

WANTED = "what to look for"
LIMITS = "when to stop, and what may be used"
PIPELINES = "pipelines, batches and single samples"
SERVING = "samples in flight (objective capacity)"
PLACING = "operators one by one (objective makespan, and list schedulers)"
SECTIONS = (WANTED, LIMITS, PIPELINES, SERVING, PLACING)


@dataclass(frozen=True)
class Effect:
    """Where an option has an effect.

    Parameters
    ----------
    where
        The same in words.
    holds
        Whether it has one on a call.
    refused
        Whether a call is refused on which the option has no effect; else the plan gets a note.
    """

    where: str
    holds: Callable[[Request], bool]
    refused: bool = False


@dataclass(frozen=True)
class Option:
    """An option of :func:`partitioner.solve`: all that Python, the command line and the documentation know.

    Parameters
    ----------
    name
        As in ``solve(name=...)``.
    default
        Its value where it is not given.
    rule
        The values that it may have.
    help
        What it does, in one clause without its default; of a switch, what True does.
    section
        One of :data:`SECTIONS`.
    meaning
        What the default means; added to a default that is a number or a text, shown in place of any other.
    effect
        Where it has an effect; None if that is everywhere, or if a rule of its own says where.
    where
        What that rule says, in words for the documentation.
    metavar
        What stands for its value in the help of the command line.
    flag, flag_help
        The flag of a switch whose default is True, which makes it False, and what the flag does; by default
        ``--no-`` and the name, and that it does not do what `help` says.
    of_file
        Whether its argument is one of those for the file of the workload, in `cli/shared_arguments.py`.
    keyword
        Whether it is a parameter of ``solve`` of its own; all others are among the ``**method_options``.
    """

    name: str
    default: Any
    rule: Rule
    help: str
    section: str
    meaning: str = ""
    effect: Effect | None = None
    where: str = ""
    metavar: str = "N"
    flag: str = ""
    flag_help: str = ""
    of_file: bool = False
    keyword: bool = False

    @property
    def shown_default(self) -> str:
        """The default as text, with its meaning.

        Examples
        --------
        >>> from partitioner.planning.option_rules import count
        >>> Option("orders", 12, count(), "try this many linear orders", LIMITS).shown_default
        '12'
        """
        text = f"{self.default:g}" if isinstance(self.default, float) else str(self.default)
        plain = isinstance(self.default, int | float | str) and not isinstance(self.default, bool)
        return ", ".join(part for part in (text if plain or not self.meaning else "", self.meaning) if part)

    def check(self, value: object) -> None:
        """Refuse a value that the option may not have.

        Raises
        ------
        OptionError
            Naming the option, its value and what it may be.
        """
        self.rule.check(self.name, value)

    def is_default(self, value: Any) -> bool:
        """Whether a value is the default."""
        return value is self.default or (type(value) is type(self.default) and bool(value == self.default))


def with_methods(*names: str, refused: bool = False) -> Effect:
    """Return the effect of an option that only these methods know."""
    return Effect(f"method {', '.join(names)}", lambda request: request.info.name in names, refused)


def with_term(term: str, where: str) -> Effect:
    """Return the effect of an option that is refused for objectives that do not depend on a term."""
    return Effect(where, lambda request: term in request.objective.terms, refused=True)
