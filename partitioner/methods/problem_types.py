"""The types of problem that a method takes, by its annotation."""

from __future__ import annotations

from collections.abc import Callable
from inspect import isroutine, signature
from typing import Any, get_args, get_type_hints

from partitioner.base.errors import OptionError, shown
from partitioner.problem.problem import Problem


def types_taken(method: Callable[..., Any]) -> tuple[type[Problem], ...]:
    """Return the types of problem that the first argument of a method is annotated with.

    It is every `Problem` if the annotation names no such type, or cannot be evaluated, as where its names are
    imported for type checkers only.

    Examples
    --------
    >>> from partitioner.methods.baselines.single_device import solve_single
    >>> types_taken(solve_single)
    (<class 'partitioner.problem.problem.Problem'>,)
    """
    try:
        hints = get_type_hints(method if isroutine(method) else type(method).__call__)
        annotation = hints.get(next(iter(signature(method).parameters)))
    except (NameError, AttributeError, TypeError, ValueError, StopIteration):
        annotation = None
    named = get_args(annotation) or (annotation,)
    return tuple(each for each in named if isinstance(each, type) and issubclass(each, Problem)) or (Problem,)


def check_type(name: str, method: Callable[..., Any], problem: Problem) -> None:
    """Check that a method of that name takes the problem.

    Raises
    ------
    OptionError
        If its annotation names other types.
    """
    types = types_taken(method)
    if not isinstance(problem, types):
        taken = " or ".join(each.__name__ for each in types)
        given = f"split {shown(problem.split)} gives one of type {type(problem).__name__}"
        rule = "its objectives, splits and features must be those of such problems"
        raise OptionError(f"method {shown(name)} takes a problem of type {taken}, but {given}: {rule}")
