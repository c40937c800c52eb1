"""The arguments of the command line that set options of ``solve``, made from the records of the options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from partitioner.base.errors import OptionError
from partitioner.cli.argument import Argument, Section, flag, value
from partitioner.planning.option import Option
from partitioner.planning.option_records import OPTIONS


def option_section(title: str, *further: Argument) -> Section:
    """Return the options of a section that can be given as text, and further arguments."""
    named = (option for option in OPTIONS.values() if option.section == title and not option.of_file)
    return Section(title, (*(argument_of(one) for one in named if one.rule.kind is not object), *further))


def argument_of(option: Option, default: str = "") -> Argument:
    """Return the argument that sets an option; its value is None if it is not given.

    Parameters
    ----------
    option
        Its record.
    default
        What its help gives as the default, in place of what the record says.

    Examples
    --------
    >>> argument_of(OPTIONS["seed"])
    Argument(name='--seed', help='draw random numbers from this seed (default: 0)', keywords={...})
    """
    name = option.name.replace("_", "-")
    ending = f" (default: {default or option.shown_default})"
    if option.rule.kind is not bool:
        return value(option.flag or f"--{name}", option.help + ending, **_reading(option))
    if not option.default:
        return flag(f"--{name}", option.help + ending, dest=option.name)
    words = option.flag_help or f"do not {option.help}"
    return flag(option.flag or f"--no-{name}", words + ending, stands_for=False, dest=option.name)


def _reading(option: Option) -> dict[str, Any]:
    """Return the keywords for argparse that describe the values of an option."""
    rule = option.rule
    if rule.names and rule.registry is None:
        long = {} if option.metavar == "N" else {"metavar": option.metavar}
        return {"choices": rule.names} | long
    return {"type": _checked(option) if rule.kind is str else rule.kind, "metavar": option.metavar}


def _checked(option: Option) -> Callable[[str], str]:
    """Return a check of texts, among them names of records of other distributions, as argparse's `type`."""

    def check(text: str) -> str:
        try:
            option.check(text)
        except OptionError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
        return text

    return check
