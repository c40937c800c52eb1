"""The interface for other packages: what they can add to this one, and the types that they need for it.

Methods, backends that solve integer programs, objectives, readers of workload files and writers of plans are
records. A call registers a record for the current process. An installed distribution offers a record as an
entry point of the group ``partitioner.methods``, ``partitioner.backends``, ``partitioner.objectives``,
``partitioner.formats`` or ``partitioner.exports``. ``docs/extending.md`` has an example of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from partitioner.base.errors import OptionError
from partitioner.base.registry import BrokenEntry, Registry
from partitioner.evaluation.result import Evaluation
from partitioner.evaluation.solution import Solution
from partitioner.evaluation.terms import Terms
from partitioner.exports.writers import WRITERS, Writer
from partitioner.formats.readers import READERS, Reader
from partitioner.methods.info import MethodInfo
from partitioner.methods.loads import part_loads, value_of
from partitioner.methods.method import Outcome, Part, Settings
from partitioner.methods.registry import METHODS
from partitioner.methods.rules import obeys
from partitioner.methods.solvers.backends.backend import Answer, Capability, SolverLimits
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.methods.solvers.program import Program
from partitioner.planning.objectives import OBJECTIVES, Objective
from partitioner.problem.measure import Measure
from partitioner.problem.problem import Problem
from partitioner.problem.variants import (
    ChainProblem,
    OperatorProblem,
    PartsProblem,
    PipelineProblem,
    SampleProblem,
)

__all__ = [
    "Answer",
    "BrokenEntry",
    "Capability",
    "ChainProblem",
    "Evaluation",
    "Measure",
    "MethodInfo",
    "Objective",
    "OperatorProblem",
    "Outcome",
    "Part",
    "PartsProblem",
    "PipelineProblem",
    "Problem",
    "Program",
    "Reader",
    "SampleProblem",
    "Settings",
    "Solution",
    "SolverLimits",
    "Terms",
    "Writer",
    "broken_entries",
    "obeys",
    "part_loads",
    "register_backend",
    "register_method",
    "register_objective",
    "register_reader",
    "register_writer",
    "registered",
    "unregister",
    "value_of",
]

REGISTRIES: tuple[Registry[Any], ...] = (METHODS, BACKENDS, OBJECTIVES, READERS, WRITERS)


def register_method(info: MethodInfo) -> None:
    """Make a method available to ``solve(method=...)`` and to comparisons, in this process.

    Raises
    ------
    OptionError
        If `info` is not a :class:`MethodInfo`, or there is a method of that name already.
    """
    METHODS.add(info)


def register_backend(backend: Capability) -> None:
    """Make a solver available to the methods that solve integer programs, in this process.

    A solver runs in a worker process that imports it: `place` must be a text ``"module:function"``.

    Raises
    ------
    OptionError
        If `backend` is not a :class:`Capability`, or there is a backend of that name already.
    """
    BACKENDS.add(backend)


def register_objective(objective: Objective) -> None:
    """Make an objective available to ``solve``, ``evaluate`` and ``certify``, in this process.

    Raises
    ------
    OptionError
        If `objective` is not an :class:`Objective`, or there is an objective of that name already.
    """
    OBJECTIVES.add(objective)


def register_reader(reader: Reader) -> None:
    """Let the command line read workload files of another format, in this process.

    Raises
    ------
    OptionError
        If `reader` is not a :class:`Reader`, or there is a reader of that name already.
    """
    READERS.add(reader)


def register_writer(writer: Writer) -> None:
    """Let the command line write plans in another format, in this process.

    Raises
    ------
    OptionError
        If `writer` is not a :class:`Writer`, or there is a writer of that name already.
    """
    WRITERS.add(writer)


def unregister(*records: object) -> None:
    """Remove records that calls have registered.

    Raises
    ------
    OptionError
        If a record is not registered by a call.
    """
    for record in records:
        _registry_of(record).remove(record)


@contextmanager
def registered(*records: object) -> Iterator[None]:
    """Register records of any type during a ``with`` block, and remove them at its end.

    Raises
    ------
    OptionError
        If a record cannot be registered; then none of them is.

    Examples
    --------
    >>> import partitioner
    >>> reader = Reader("pairs", (".pairs",), lambda path: partitioner.load(path))
    >>> with registered(reader):
    ...     list(READERS)
    ['pairs']
    >>> list(READERS)
    []
    """
    done: list[object] = []
    try:
        for record in records:
            _registry_of(record).add(record)
            done.append(record)
        yield
    finally:
        unregister(*reversed(done))


def broken_entries() -> tuple[BrokenEntry, ...]:
    """Return the refused entry points of all groups, each with the reason."""
    return tuple(entry for registry in REGISTRIES for entry in registry.broken())


def _registry_of(record: object) -> Registry[Any]:
    for registry in REGISTRIES:
        if registry.takes(record):
            return registry
    sorts = ", ".join(kind.__name__ for kind in (MethodInfo, Capability, Objective, Reader, Writer))
    raise OptionError(f"a {type(record).__name__} cannot be registered: must be one of {sorts}")
