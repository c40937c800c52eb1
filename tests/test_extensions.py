"""What other packages register, by a call or by entry points, works like what is here and can be removed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from partitioner import (
    BackendUnavailable,
    Devices,
    Graph,
    OptionError,
    PartitionerError,
    WorkloadError,
    load,
    solve,
)
from partitioner.cli.command_line import main
from partitioner.extensions import (
    REGISTRIES,
    Capability,
    Measure,
    MethodInfo,
    Objective,
    Reader,
    Writer,
    broken_entries,
    registered,
    unregister,
)
from partitioner.methods.baselines.trivial import solve_single
from partitioner.methods.registry import METHODS
from partitioner.methods.solvers.backends.catalogue import BACKENDS
from partitioner.planning.objectives import THROUGHPUT
from tests.installed import install

GRAPH = Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
DEVICES = Devices.accelerated(2)
INFO = MethodInfo(
    "mine", solve_single, ("throughput",), ("chain", "free"), ("numpy",), "my own", may_miss=True
)
BACKEND = Capability("through", "through_solver:solve", ("ortools",), "install ortools")
THROUGH = """
from partitioner.methods.solvers.backends.mathopt import solve_highs

def solve(program, limits, tell):
    return solve_highs(program, limits, tell)
"""
ACME = """
from partitioner.extensions import MethodInfo, Outcome
from partitioner.methods.baselines.trivial import solve_single

ONE = MethodInfo("one", solve_single, ("throughput",), ("chain",), ("numpy",), "one device", may_miss=True)
TWO = "no record"
"""
POINTS = {
    "partitioner.methods": "one = acme_methods:ONE\ntwo = acme_methods:TWO\ndp = acme_methods:ONE\n",
    "partitioner.objectives": "lost = acme_without_module:LOST\n",
}
PROGRAM = """
import sys
import partitioner
from partitioner.cli.command_line import main
graph = partitioner.Graph.from_arrays({"accelerator": [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], cost=0.5)
devices = partitioner.Devices.accelerated(2)
assert partitioner.solve(graph, devices).value == 3.5 and "acme_methods" not in sys.modules
assert partitioner.solve(graph, devices, method="one").value == 6.0
for asked in ({"method": "two"}, {"objective": "lost"}):
    try:
        partitioner.solve(graph, devices, **asked)
    except partitioner.OptionError as error:
        print(error)
assert main(["methods"]) == 0
"""
Captured = pytest.CaptureFixture[str]


def by_name(workload_file: Path) -> Callable[[Path], Any]:
    """A reader that makes the workload of another file, whatever it is given."""
    return lambda path: load(workload_file)


def test_a_registered_method_is_a_method_like_any_other(capsys: Captured) -> None:
    with registered(INFO):
        plan = solve(GRAPH, DEVICES, method="mine")
        assert (plan.value, plan.method, plan.backend) == (6.0, "mine", "numpy")
        assert main(["methods", "mine", "--format", "json"]) == 0
        (record,) = json.loads(capsys.readouterr().out)
        assert record["place"] == "partitioner.methods.baselines.trivial:solve_single"
    with pytest.raises(OptionError, match="method = 'mine': must be one of auto, dp"):
        solve(GRAPH, DEVICES, method="mine")


def test_options_that_a_registered_method_takes_account_of_have_no_note() -> None:
    start = solve(GRAPH, DEVICES)
    with registered(INFO, replace(INFO, name="started", options=("warm_start",))):
        assert any(
            "warm_start" in note for note in solve(GRAPH, DEVICES, method="mine", warm_start=start).notes
        )
        assert solve(GRAPH, DEVICES, method="started", warm_start=start).notes == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"place": 7}, "method 'mine': place = 7: must be a function, or a text module:function"),
        ({"place": "no_function"}, "place = 'no_function': must be a function, or a text"),
        ({"objectives": "throughput"}, "objectives = 'throughput': must be a tuple of texts"),
        ({"splits": ()}, r"splits = \(\): must be a tuple of texts that is not empty"),
        ({"splits": ("round",)}, r"splits = \('round',\): must be among chain, convex, free"),
        ({"backends": ()}, r"backends = \(\): must be"),
    ],
)
def test_a_record_of_a_method_with_a_broken_field_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        replace(INFO, **fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"measure": "load"}, "objective 'mine': measure = 'load': must be a Measure"),
        ({"splits": ("round",)}, r"splits = \('round',\): must be a tuple of chain, convex, free"),
        ({"evaluate": None}, "evaluate = None: must be a function"),
    ],
)
def test_a_record_of_an_objective_with_a_broken_field_is_refused(
    fields: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"measure": Measure.OTHER, "splits": ("free",), "evaluate": THROUGHPUT.evaluate}
    with pytest.raises(OptionError, match=message):
        Objective("mine", terms=(), method="mine", **given | fields)


def test_a_registered_backend_solves_where_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "through_solver.py").write_text(THROUGH, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with registered(BACKEND):
        plan = solve(GRAPH, DEVICES, method="ip", split="free", backend="through", workers=1)
        assert plan.status == "optimal" and plan.backend == "through"
        with pytest.raises(BackendUnavailable, match="method dp does not run on 'through', only on numba"):
            solve(GRAPH, DEVICES, method="dp", backend="through")
    with pytest.raises(BackendUnavailable, match="does not run on 'through', only on gurobi, scip, highs"):
        solve(GRAPH, DEVICES, method="ip", split="free", backend="through")


def test_a_registered_backend_whose_package_is_missing_is_refused_with_the_remedy() -> None:
    absent = replace(BACKEND, packages=("a_package_that_is_not_there",), remedy="install it")
    with (
        registered(absent),
        pytest.raises(BackendUnavailable, match=r"backend through needs a_package.*install"),
    ):
        solve(GRAPH, DEVICES, method="ip", split="free", backend="through")


def test_the_command_line_reads_and_writes_files_of_other_formats(
    workload_file: Path, tmp_path: Path
) -> None:
    net, out = tmp_path / "net.acme", tmp_path / "plan.pairs"
    net.touch()
    reader = Reader("acme", (".acme",), by_name(workload_file))
    writer = Writer("pairs", (".pairs",), lambda plan, workload: f"{workload.name} {plan.value!r}".encode())
    with registered(reader, writer):
        assert main(["solve", str(net), "--accelerators", "1", "--output", str(out)]) == 0
    expected = load(workload_file)
    value = solve(expected.graph, replace(expected.devices, kinds=one_accelerator(expected.devices))).value
    assert out.read_bytes() == f"{expected.name} {value!r}".encode()


def one_accelerator(devices: Devices) -> Any:
    return tuple(replace(kind, count=1) if kind.name == "accelerator" else kind for kind in devices.kinds)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda path: 1 / 0, "reader acme failed: ZeroDivisionError"),
        (lambda path: None, "result of reader acme: NoneType: must be a partitioner.Workload"),
    ],
)
def test_a_reader_that_fails_is_bad_input(
    tmp_path: Path, capsys: Captured, read: Callable[[Path], Any], message: str
) -> None:
    net = tmp_path / "net.acme"
    net.touch()
    with registered(Reader("acme", (".acme",), read)):
        assert main(["solve", str(net)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("content", [lambda plan, workload: 1 / 0, lambda plan, workload: 7])
def test_a_writer_that_fails_leaves_the_file_as_it_was(
    tmp_path: Path, workload_file: Path, capsys: Captured, content: Callable[..., Any]
) -> None:
    out = tmp_path / "plan.pairs"
    out.write_text("before", encoding="utf-8")
    with registered(Writer("pairs", (".pairs",), content)):
        assert main(["solve", str(workload_file), "--output", str(out)]) == 2
    assert "writer pairs" in capsys.readouterr().err and out.read_text(encoding="utf-8") == "before"


@pytest.mark.parametrize("suffixes", [".acme", (), ("acme",), (".ACME",), (".",), (".acme", ".json")])
@pytest.mark.parametrize("kind", [Reader, Writer])
def test_suffixes_that_are_none_or_taken_are_refused(kind: Callable[..., Any], suffixes: Any) -> None:
    with pytest.raises(OptionError, match=r"er 'acme': suffixes = .*: must be a tuple such as \('.abc',\)"):
        kind("acme", suffixes, lambda *given: None)


def test_if_one_record_cannot_be_registered_none_is() -> None:
    taken = replace(INFO, name="dp")
    with (
        pytest.raises(OptionError, match="method 'dp' is refused: another method has that name"),
        registered(INFO, taken),
    ):
        pass
    assert "mine" not in METHODS
    with pytest.raises(
        OptionError, match="a str cannot be registered: must be one of MethodInfo, Capability"
    ):
        unregister("mine")


def test_nothing_is_registered_here_by_itself() -> None:
    assert broken_entries() == ()
    assert all(set(registry) == set(registry.own) for registry in REGISTRIES)
    assert set(BACKENDS) == {"gurobi", "scip", "highs", "cpsat", "cbc"}


def test_installed_distributions_offer_methods_and_a_broken_one_harms_nobody(tmp_path: Path) -> None:
    """In a process of its own: nothing is loaded that is not asked for; the list names what is refused."""
    install(tmp_path / "site", "acme-methods", {"acme_methods": ACME}, POINTS)
    paths = os.pathsep.join([str(tmp_path / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    two = "method two of distribution acme-methods is refused: must be a MethodInfo, not of type str"
    lost = "objective lost of distribution acme-methods is refused: ModuleNotFoundError: No module named"
    dp = "method dp of distribution acme-methods is refused: another method has that name"
    lines = done.stdout.splitlines()
    assert lines[0] == f"method = 'two': {two}" and lines[1].startswith(f"objective = 'lost': {lost}")
    assert {two, dp} <= set(lines[2:]) and sum(line.startswith(lost) for line in lines[2:]) == 1
    assert any(line.split()[:1] == ["one"] for line in lines)


def test_errors_of_readers_keep_their_type(tmp_path: Path, workload_file: Path) -> None:
    """A reader that refuses a file in the words of this package is passed on as it is."""
    from partitioner.base.errors import Flaw
    from partitioner.formats.readers import read_foreign

    def refuse(path: Path) -> Any:
        raise WorkloadError([Flaw("line 3", "", "", "must be a number")], str(path))

    with registered(Reader("acme", (".acme",), refuse)):
        with pytest.raises(PartitionerError, match=r"net\.acme: line 3: must be a number"):
            read_foreign(tmp_path / "net.acme")
        assert read_foreign(workload_file) is None
