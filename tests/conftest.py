"""Fixtures that more than one test module uses."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from tests.instances import document, write

settings.register_profile(
    "any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)  # how long an example takes says nothing on a machine with other work
settings.load_profile("any machine")


class ByFolder(LoadScopeScheduling):  # type: ignore[misc]
    """Gives all tests of a folder to one process, so that hardly any kernel is compiled in two at a time."""

    def _split_scope(self, nodeid: str) -> str:
        return nodeid.partition("::")[0].rpartition("/")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder | None:
    """Return what hands tests out to the processes of ``-n``; None where ``--dist`` asks for another way."""
    return ByFolder(config, log) if config.getoption("dist") == "load" else None


BEGAN = time.monotonic()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that limit how long slow tests run."""
    group = parser.getgroup("slow tests")
    group.addoption(
        "--slow-for",
        type=float,
        metavar="SECONDS",
        help="skip slow tests that have not begun after this time",
    )
    group.addoption(
        "--slow-order", type=int, metavar="SEED", help="shuffle the files, so that others come last"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the doctests slow whose kernels compile for long, and shuffle the files where that is asked."""
    for item in items:
        if item.name in SLOW_DOCTESTS:
            item.add_marker(pytest.mark.slow)
    if config.getoption("slow_order") is not None:
        files = list(dict.fromkeys(item.path for item in items))
        random.Random(config.getoption("slow_order")).shuffle(files)
        place = {path: i for i, path in enumerate(files)}
        items.sort(key=lambda item: place[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a slow test if their time is over."""
    seconds = item.config.getoption("slow_for")
    if seconds is not None and time.monotonic() - BEGAN > seconds and item.get_closest_marker("slow"):
        pytest.skip(f"the {seconds:g} s for slow tests are over")


SLOW_DOCTESTS = ("partitioner.planning.splitting.operations.split_operations",)
SHARED = Path(__file__).parents[2] / "shared" / "workloads"


@pytest.fixture(scope="session")
def published() -> Path:
    """The folder of the published workloads; a test that needs it is skipped where it is missing."""
    folder = Path(os.environ.get("PARTITIONER_WORKLOADS", SHARED))
    if not folder.is_dir():
        pytest.skip(f"the published workloads are not here: no folder {folder} (PARTITIONER_WORKLOADS)")
    return folder


@pytest.fixture(scope="session")
def reference(published: Path) -> Callable[[str], Any]:
    """A function that reads a published table by name, e.g. ``reference("table1")``."""

    def read(name: str) -> Any:
        path = published.parent / "reference" / f"{name}.json"
        if not path.is_file():
            pytest.skip(f"the published table is not here: no file {path}")
        return json.loads(path.read_text(encoding="utf-8"))

    return read


@pytest.fixture
def workload_file(tmp_path: Path) -> Path:
    """A small valid workload file with forward and backward nodes, colours and a CPU."""
    return write(tmp_path, document())


@pytest.fixture(autouse=True, scope="session")
def _heeds_ctrl_c() -> Iterator[None]:
    """SIGINT has Python's own handler, also where a shell runs the tests in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
