"""Importing the package is cheap: no solver and no compiler is loaded before it is needed."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    *("numba", "ortools", "pulp", "gurobipy", "matplotlib"),
    *("distributed", "pyarrow"),
    *("torch", "onnx", "onnxruntime", "accelerate", "megatron", "deepspeed", "torchtitan"),
)


def modules_after(statement: str) -> set[str]:
    """The names in ``sys.modules`` of a fresh interpreter that has run the statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_solver_and_no_compiler() -> None:
    assert modules_after("import partitioner").isdisjoint(HEAVY)


def test_the_command_line_loads_none_either() -> None:
    assert modules_after("import partitioner.cli.command_line").isdisjoint(HEAVY)


def test_the_checks_of_methods_are_loaded_only_where_they_are_asked_for() -> None:
    assert "partitioner.testing" not in modules_after("import partitioner")
    assert "partitioner.testing" not in modules_after("import partitioner.cli.command_line")


def test_every_public_name_is_there() -> None:
    """``__all__`` is sorted and names only what exists."""
    import partitioner

    assert sorted(partitioner.__all__) == list(partitioner.__all__)
    assert all(hasattr(partitioner, name) for name in partitioner.__all__)
