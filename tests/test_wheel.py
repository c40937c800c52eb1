"""A wheel of the repository holds the package and nothing else, and works where only it is installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.test_readme import BLOCK, README, ROOT

pytestmark = pytest.mark.slow
SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from a copy, so that nothing is written into the repository."""
    source, built = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("built")
    for name in SOURCES:
        shutil.copy(ROOT / name, source)
    shutil.copytree(ROOT / "partitioner", source / "partitioner")  # with what lies there by chance
    options = ("--no-deps", "--no-build-isolation", "-w", built)
    done = run(sys.executable, "-m", "pip", "wheel", "-q", *options, source, folder=built)
    assert done.returncode == 0, done.stderr
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = [
        *(ROOT / "partitioner").rglob("*.py"),
        *(ROOT / "partitioner/analysis/reports/assets").iterdir(),
    ]
    sources += (ROOT / "partitioner/estimation").glob("*.json")
    assert held == {file.relative_to(ROOT).as_posix() for file in sources} | {"partitioner/py.typed"}


def test_the_readme_runs_where_only_the_wheel_is_installed(wheel: Path, tmp_path: Path) -> None:
    """In a new environment without the tools of development, outside the repository."""
    environment = tmp_path / "environment"
    assert run(sys.executable, "-m", "venv", environment, folder=tmp_path).returncode == 0
    python = environment / "bin" / "python"
    done = run(python, "-m", "pip", "install", "-q", wheel, folder=tmp_path)
    if "No matching distribution" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    (tmp_path / "readme.py").write_text("\n".join(BLOCK.findall(README)), encoding="utf-8")
    done = run(python, "readme.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "throughput, chain split: 236.358 per sample" in done.stdout
