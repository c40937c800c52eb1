"""The record of a method, which is known before the method's module is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import isroutine, signature
from typing import Any, cast, get_args, get_type_hints

from partitioner.base.errors import OptionError, shown
from partitioner.base.registry import imported
from partitioner.evaluation.shape import SHAPES
from partitioner.methods.method import Method, Outcome, Settings
from partitioner.problem.problem import Problem


def types_taken(method: Callable[..., Any]) -> tuple[type[Problem], ...]:
    """Return the types of problem that the first argument of a method is annotated with.

    It is every `Problem` if the annotation names no such type, or cannot be evaluated, as where its names are
    imported for type checkers only.

    Examples
    --------
    >>> from partitioner.methods.baselines.trivial import solve_single
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


@dataclass(frozen=True)
class MethodInfo:
    """The record of a method, which is known before the method's module is imported.

    Parameters
    ----------
    name
        As in ``solve(method=...)``.
    place
        The method, or the text ``"module:function"`` that says where it is.
    objectives, splits, backends
        The objectives, splits and backends that it can be called with.
    guarantee
        What its result is, in a line. ``partitioner methods`` shows about 50 characters of it on a narrow
        terminal, so what matters comes first.
    features
        What it takes account of in addition to stages of one device each on equal links, see
        :meth:`partitioner.workload.pipeline_settings.Regime.features`.
    features_for
        The objectives for which it takes account of these; empty for all of its objectives.
    needs
        Those of the features without which it has nothing to do.
    splits_of
        The splits for an objective, where they are not `splits`.
    may_miss
        Whether it may end without a plan, or refuse a workload, although there is a plan.
    options
        The options of :func:`partitioner.solve` that it takes account of in addition to those that every
        method does, such as ``"warm_start"``.

    Raises
    ------
    OptionError
        If a field has a wrong type, or a split does not exist.
    """

    name: str
    place: str | Callable[[Any, Settings], Outcome]
    objectives: tuple[str, ...]
    splits: tuple[str, ...]
    backends: tuple[str, ...]
    guarantee: str
    features: tuple[str, ...] = ()
    features_for: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    splits_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    may_miss: bool = False
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not callable(self.place) and not (isinstance(self.place, str) and self.place.count(":") == 1):
            self._refuse("place", "a function, or a text module:function")
        for name in ("objectives", "splits", "backends"):
            if not _is_texts(getattr(self, name)) or not getattr(self, name):
                self._refuse(name, "a tuple of texts that is not empty")
        for name in ("features", "features_for", "needs", "options"):
            if not _is_texts(getattr(self, name)):
                self._refuse(name, "a tuple of texts")
        for splits in (self.splits, *self.splits_of.values()):
            if not set(splits) <= set(SHAPES):
                self._refuse("splits", f"among {', '.join(SHAPES)}")

    def _refuse(self, name: str, rule: str) -> None:
        value = shown(getattr(self, name))
        raise OptionError(f"method {shown(self.name)}: {name} = {value}: must be {rule}")

    @property
    def places_operators(self) -> bool:
        """Whether it can place the user's nodes one by one, as a list scheduler does."""
        return "operators" in self.features

    def splits_for(self, objective: str) -> tuple[str, ...]:
        """Return the splits that it can be called with for that objective."""
        return self.splits_of.get(objective, self.splits)

    def knows(self, feature: str, objective: str) -> bool:
        """Whether it takes account of a feature for that objective."""
        return feature in self.features and (not self.features_for or objective in self.features_for)

    def load(self) -> Method:
        """Return the method; import its module first if `place` is a text."""
        return cast(Method, imported(self.place) if isinstance(self.place, str) else self.place)

    def load_for(self, problem: Problem) -> Method:
        """Return the method, as :meth:`load` does, if it takes a problem of that type.

        Raises
        ------
        OptionError
            If it does not.
        """
        method = self.load()
        check_type(self.name, method, problem)
        return method


def _is_texts(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
