"""What the README and the pages of options say runs: their Python, page by page, and the commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from partitioner.cli.command_line import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"`(partitioner\s+(?:solve|methods)\s[^`]*|partitioner --version)`")
PAGES = ("docs/exports.md", "docs/methods.md", "docs/options.md", "docs/sweeps.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder beside which the instances lie, as in a clone."""
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    return tmp_path


def test_every_block_of_python_runs_after_those_before_it(folder: Path) -> None:
    """One after another in one interpreter, as somebody who reads the page would do."""
    blocks = BLOCK.findall(README)
    assert len(blocks) >= 5
    program = folder / "readme.py"
    program.write_text("\n".join(blocks), encoding="utf-8")
    done = subprocess.run([sys.executable, program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "throughput, chain split: 236.358 per sample" in done.stdout
    written = {path.name for path in folder.iterdir()} - {"readme.py", "instances"}
    assert written == set(re.findall(r'"(\w+\.json)"\)', "".join(blocks)))


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page: str, folder: Path) -> None:
    """As in the README, in an interpreter for each page; pictures are drawn without a display."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    assert len(blocks) >= 1
    program = "\n".join(["import matplotlib", "matplotlib.use('agg')", *blocks])
    done = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_link_to_a_file_leads_somewhere() -> None:
    for page in ("README.md", *PAGES):
        found = re.findall(r"\]\(([^)#]+)[^)]*\)", (ROOT / page).read_text(encoding="utf-8"))
        links = [link for link in found if not link.startswith("https:")]
        assert len(links) >= 1
        assert [link for link in links if not (ROOT / page).parent.joinpath(link).exists()] == []


def test_commands_on_instances_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those that name a file of the repository, also where a line is wrapped, and the first of all."""
    monkeypatch.chdir(folder)
    named = [" ".join(words.split()) for words in COMMAND.findall(README)]
    runs = [words for words in named if "instances/" in words]
    assert len(runs) >= 1
    for words in [*runs, "partitioner solve instances/bert24_training.json"]:
        assert main(shlex.split(words)[1:]) == 0
    first = re.search(r"^throughput, chain split: .*$", README, re.MULTILINE)
    assert first is not None and first[0] in capsys.readouterr().out
