"""Importing the package is cheap: what is loaded is needed, and Ctrl-C ends it in a line."""

from __future__ import annotations

import pkgutil
import signal
import subprocess
import sys
import time

import pytest

from partitioner import __main__

FRAMEWORKS = ("torch", "onnx", "onnxruntime", "accelerate", "megatron", "deepspeed", "torchtitan")
HEAVY = (
    *("numba", "ortools", "pulp", "gurobipy", "matplotlib"),
    *("distributed", "pyarrow"),
    *FRAMEWORKS,
)


def modules_after(statement: str) -> set[str]:
    """The names in ``sys.modules`` of a fresh interpreter that has run the statement."""
    program = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_no_solver_and_no_compiler() -> None:
    assert modules_after("import partitioner.api").isdisjoint(HEAVY)


def test_the_command_line_loads_none_either() -> None:
    assert modules_after("import partitioner.cli.command_line").isdisjoint(HEAVY)


def test_packages_of_integrations_need_no_framework_to_be_imported() -> None:
    """A call says which extra it needs, in a line; the import of what holds it must not fail before that."""
    import partitioner.integrations as there

    walked = pkgutil.walk_packages(there.__path__, f"{there.__name__}.")
    packages = [found.name for found in walked if found.ispkg]
    missing = f"sys.modules.update(dict.fromkeys({FRAMEWORKS}))"  # an import of one is an ImportError then
    assert set(packages) <= modules_after(f"{missing}; import {', '.join(packages)}")
    assert len(packages) > 5


def test_the_checks_of_methods_are_loaded_only_where_they_are_asked_for() -> None:
    assert "partitioner.testing" not in modules_after("import partitioner.api")
    assert "partitioner.testing" not in modules_after("import partitioner.cli.command_line")


def test_every_public_name_is_there() -> None:
    """``__all__`` is sorted and names only what exists."""
    import partitioner

    assert sorted(partitioner.__all__) == list(partitioner.__all__)
    assert all(hasattr(partitioner, name) for name in partitioner.__all__)


def test_names_are_imported_when_the_first_is_asked_for() -> None:
    assert modules_after("import partitioner").isdisjoint({"numpy", "networkx", "partitioner.api"})
    assert "partitioner.api" in modules_after("from partitioner import Graph")
    star = "from partitioner import *; solve, Graph"
    assert "partitioner.api" in modules_after(star)


def test_other_names_are_refused_as_by_any_module() -> None:
    import partitioner

    assert "solve" in dir(partitioner) and partitioner.schedule.simulate is not None
    with pytest.raises(AttributeError, match="module 'partitioner' has no attribute 'resolve'"):
        partitioner.resolve  # noqa: B018
    with pytest.raises(AttributeError, match="__wrapped__"):
        partitioner.__wrapped__  # noqa: B018


@pytest.mark.parametrize("seconds", [0.15, 0.3, 0.5])
def test_ctrl_c_while_the_program_is_imported_gives_no_traceback(seconds: float) -> None:
    began = "import partitioner.__main__ as m; print('begun', flush=True); m.run()"
    command = [sys.executable, "-c", began, "methods"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None and program.stdout.readline() == "begun\n"
        time.sleep(seconds / 2)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=60)
    if program.returncode != 0:  # it was not done by then
        assert program.returncode == 130
        assert errors.startswith("partitioner: interrupted") and errors.count("\n") == 1


IN_A_CALLBACK = """
import ctypes, signal, sys, time
from partitioner import __main__ as program

def interrupted():
    if sys.argv[1] == "Ctrl-C":
        signal.raise_signal(signal.SIGINT)
    raise ValueError("another exception")

sys.unraisablehook = program.interrupt_again
try:
    ctypes.CFUNCTYPE(None)(interrupted)()
    for _ in range(600 if sys.argv[1] == "Ctrl-C" else 0):
        time.sleep(0.05)  # the repeated one does not end a sleep
except KeyboardInterrupt:
    sys.exit(program.INTERRUPTED)
"""


def test_an_interrupt_that_a_callback_of_compiled_code_loses_comes_again() -> None:
    ended = subprocess.run([sys.executable, "-c", IN_A_CALLBACK, "Ctrl-C"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (130, "")
    other = subprocess.run([sys.executable, "-c", IN_A_CALLBACK, "other"], capture_output=True, text=True)
    assert other.returncode == 0 and "ValueError: another exception" in other.stderr


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
def test_ctrl_c_while_a_class_is_made_is_one_too(
    raised: type[BaseException], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in an import of matplotlib; any other exception there stays what it is."""

    class Named:
        def __set_name__(self, owner: type, name: str) -> None:
            raise raised

    def run() -> None:
        type("Holder", (), {"member": Named()})

    monkeypatch.setattr("partitioner.cli.run", run)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    with pytest.raises((SystemExit, RuntimeError, ValueError)) as ended:
        __main__.run()
    said = capsys.readouterr().err
    if raised is KeyboardInterrupt:
        assert isinstance(ended.value, SystemExit) and ended.value.code == 130
        assert said == "partitioner: interrupted\n"
    else:
        assert not isinstance(ended.value, SystemExit) and said == ""


def test_pictures_are_imported_by_their_public_name() -> None:
    """What the manual imports from ``partitioner.plots`` is what draws, and loads matplotlib only then."""
    assert modules_after("from partitioner.plots import plot_graph, plot_sweep").isdisjoint(HEAVY)
