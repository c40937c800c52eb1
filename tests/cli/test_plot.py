"""``partitioner plot`` writes each picture in each format, whole or not at all, and says what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from partitioner import Evaluation, load, solve
from partitioner.analysis.plots import plot_loads
from partitioner.cli.command_line import main
from tests.analysis.plots.conftest import style as style  # the fixture that sets each style of matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
WORKLOAD = Path("instances/gnmt_training.json")
Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The plan of a small published network."""
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    workload = load(WORKLOAD)
    solve(workload.graph, workload.devices, method="dpl").save(path)
    return path


def draw(plan: Path, output: Path, *options: object) -> int:
    return main(["plot", str(WORKLOAD), str(plan), "--output", str(output), *map(str, options)])


@pytest.mark.parametrize("what", ["loads", "timeline", "memory", "graph"])
def test_each_picture(what: str, plan: Path, tmp_path: Path, style: str) -> None:
    """Its background is dark if the style is dark already, or if asked for."""
    light, dark = tmp_path / "light.svg", tmp_path / "dark.svg"
    assert draw(plan, light, "--what", what) == 0 and draw(plan, dark, "--what", what, "--dark") == 0
    assert light.read_bytes().startswith(b"<?xml")
    assert (light.read_bytes() != dark.read_bytes()) == (style == "default")


@pytest.mark.parametrize(
    "suffix", ["svg", *(pytest.param(name, marks=pytest.mark.slow) for name in ("png", "pdf"))]
)
def test_each_format(suffix: str, plan: Path, tmp_path: Path) -> None:
    """Twice the same file for the same input."""
    first, second = tmp_path / f"first.{suffix}", tmp_path / f"second.{suffix.upper()}"
    assert [draw(plan, path) for path in (first, second)] == [0, 0]
    assert first.read_bytes().startswith(STARTS[suffix])
    assert first.read_bytes() == second.read_bytes()


def test_schedules_can_be_chosen(plan: Path, tmp_path: Path) -> None:
    names = ("gpipe", "1f1b", "zb-h1")
    for name in names:
        options = ("--what", "timeline", "--schedule", name, "--microbatches", 4)
        assert draw(plan, tmp_path / f"{name}.svg", *options) == 0
    assert len({(tmp_path / f"{name}.svg").read_bytes() for name in names}) == 3


def test_the_bound_is_that_of_the_plan(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not if the plan is for other devices."""
    bounds: list[float | None] = []

    def noted(evaluation: Evaluation, bound: float | None) -> Axes:
        bounds.append(bound)
        return plot_loads(evaluation, bound=bound)

    monkeypatch.setattr("partitioner.cli.plot.plot_loads", noted)
    assert draw(plan, tmp_path / "a.png") == 0
    assert draw(plan, tmp_path / "a.png", "--accelerators", 7) == 0
    assert bounds[0] is not None and bounds[0] > 0 and bounds[1] is None


@pytest.mark.parametrize(
    ("output", "options", "said"),
    [
        ("a.gif", (), "must end in one of .png, .svg, .pdf"),
        ("a.png", ("--what", "graph", "--microbatches", 4), "are for --what timeline and memory"),
        ("a.png", ("--what", "memory", "--schedule", "none"), "schedule = 'none': must be"),
        ("nowhere/a.png", (), "cannot be written"),
    ],
)
def test_what_is_refused(
    output: str, options: tuple[object, ...], said: str, plan: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert draw(plan, tmp_path / output, *options) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib(plan: Path, tmp_path: Path) -> None:
    """The command line and the functions say what to install."""
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from partitioner.cli.command_line import main\n"
        "from partitioner import BackendUnavailable, evaluate, Graph, Devices\n"
        "from partitioner.analysis.plots import plot_loads\n"
        "graph = Graph.from_arrays({'accelerator': [1.0]}, [])\n"
        "try: plot_loads(evaluate(graph, Devices.accelerated(1), {0: 'accelerator0'}))\n"
        "except BackendUnavailable as error: print(error)\n"
        f"sys.exit(main(['plot', {str(WORKLOAD)!r}, {str(plan)!r}, '--output', {str(tmp_path / 'a.png')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    words = 'pictures need matplotlib: pip install "dnn-partitioner[plots]"'
    assert done.returncode == 2
    assert done.stdout.strip() == words and words in done.stderr


@pytest.mark.parametrize("module", ["__init__", "pyplot"])
def test_ctrl_c_while_matplotlib_is_imported_waits_for_its_end(module: str, tmp_path: Path) -> None:
    """Its compiled modules would make an ImportError of it, and may not survive that."""
    package = tmp_path / "matplotlib"
    package.mkdir()
    for name in ("__init__", "pyplot", "style"):
        (package / f"{name}.py").touch()
    pressed = "import signal, sys\nsignal.raise_signal(signal.SIGINT)\nsys.stdout.write('went on')\n"
    (package / f"{module}.py").write_text(pressed)
    program = "from partitioner.cli.pictures import drawn; drawn(lambda: None, '.png')"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.stdout == "went on" and done.stderr.rstrip().endswith("KeyboardInterrupt")
