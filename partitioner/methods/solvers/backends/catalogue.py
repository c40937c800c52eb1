"""The backends by name, and the choice of those that a run uses."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from typing import cast

from partitioner.base.distribution import remedy
from partitioner.base.errors import BackendUnavailable
from partitioner.base.registry import Registry, imported
from partitioner.methods.solvers.backends.backend import Capability
from partitioner.methods.solvers.program import Program

_HERE = "partitioner.methods.solvers.backends"
_ORTOOLS = "install ortools"


_BACKENDS = (
    Capability(
        "gurobi",
        f"{_HERE}.gurobi:solve_gurobi",
        ("gurobipy",),
        remedy("gurobi"),
        streams=True,
        parallel=True,
        licence=f"{_HERE}.gurobi:largest",
    ),
    Capability("scip", f"{_HERE}.mathopt:solve_scip", ("ortools",), _ORTOOLS, streams=True),
    Capability("highs", f"{_HERE}.mathopt:solve_highs", ("ortools",), _ORTOOLS),
    Capability("cpsat", f"{_HERE}.cpsat:solve_cpsat", ("ortools",), _ORTOOLS, streams=True),
    Capability("cbc", f"{_HERE}.cbc:solve_cbc", ("pulp",), "install pulp"),
)
BACKENDS = Registry("backend", "partitioner.backends", Capability, _BACKENDS, reserved=("auto",))
FREE = ("scip", "highs", "cbc")


def is_present(backend: Capability) -> bool:
    """Whether the backend's packages can be imported here."""
    try:
        return all(find_spec(package) is not None for package in backend.packages)
    except ValueError:  # sys.modules holds None in its place
        return False


def missing_backends() -> list[str]:
    """Return the names of the backends that are not installed."""
    return [backend.name for backend in BACKENDS.values() if not is_present(backend)]


@cache
def largest(backend: Capability) -> int | None:
    """Return how many rows and columns the licence of a present backend covers; None without a limit."""
    return cast("int | None", imported(backend.licence)()) if backend.licence else None


def covers(backend: Capability, program: Program) -> bool:
    """Whether the installed licence covers a program of this size."""
    limit = largest(backend)
    return limit is None or max(program.columns, program.rows) <= limit


def candidates(name: str) -> tuple[Capability, ...]:
    """Return the backends that a run uses unless a licence is too small for its program.

    Raises
    ------
    BackendUnavailable
        If the named backend is not installed.
    """
    if name == "auto":
        gurobi = BACKENDS["gurobi"]
        return (gurobi,) if is_present(gurobi) else _free()
    backend = BACKENDS[name]
    if not is_present(backend):
        missing = ", ".join(backend.packages)
        raise BackendUnavailable(f"backend {name} needs {missing}: {backend.remedy}")
    return (backend,)


def _free() -> tuple[Capability, ...]:
    """Return the two best free solvers that are installed: where one is slow the other often is not."""
    present = tuple(BACKENDS[each] for each in FREE if is_present(BACKENDS[each]))
    if not present:
        raise BackendUnavailable(f"no solver of integer programs is installed: {_ORTOOLS}")
    return present[:2]


def pick(name: str, program: Program) -> tuple[tuple[Capability, ...], str]:
    """Return the backends of a run in order of preference, and a note on the reason.

    Raises
    ------
    BackendUnavailable
        If the named backend is not installed, or its licence does not cover the program.
    """
    chosen = candidates(name)
    if not covers(chosen[0], program):
        if name != "auto":
            raise BackendUnavailable(_too_large(chosen[0], program))
        return _free(), f"backend {_names(_free())}: {_too_large(chosen[0], program)}"
    if name != "auto":
        return chosen, ""
    licensed = chosen[0].name == "gurobi"
    why = "its licence covers the program" if licensed else "gurobipy is not installed"
    return chosen, f"backend {_names(chosen)}: {why}"


def _names(backends: Sequence[Capability]) -> str:
    return " and ".join(backend.name for backend in backends)


def _too_large(backend: Capability, program: Program) -> str:
    return (
        f"the licence of {backend.name} covers {largest(backend):,} variables and as many constraints, "
        f"the program has {program.columns:,} and {program.rows:,}"
    )
