"""Every snippet of Python in the manual runs, page by page, after what the page takes as given."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.manual_preludes import PRELUDES

ROOT = Path(__file__).parents[1]
DOCS, SHARED = ROOT / "docs", ROOT.parent / "shared"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ELSEWHERE = {"extending.md"}  # tests/test_extending.py runs and examines it
NEEDS = {
    "torch": ("torch.md", "profiling.md", "placing.md", "pipelines.md", "tutorial.md"),
    "onnxruntime": ("graphs_in.md",),
}
LAUNCHED = {("pipelines.md", 1)}  # every rank of a pipeline runs it
FOLDERS = {"graphs_in.md": ("metis", SHARED / "benchmarks" / "sailor" / "metis")}


def pages() -> list[str]:
    """The pages with snippets, as paths below the folder of the manual."""
    found = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text(encoding="utf-8"))]
    return [str(page.relative_to(DOCS)) for page in found if page.name not in ELSEWHERE]


def programs(page: str) -> list[tuple[bool, str]]:
    """The programs of a page, each with whether all ranks run it: snippets in their order."""
    blocks = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    given = [PRELUDES.get((page, i), "") for i in range(len(blocks))]
    found, text = [], ""
    for i, block in enumerate(blocks):
        if (page, i) in LAUNCHED:
            found.append((True, given[i] + block))
            text += given[i]
        else:
            text += given[i] + block
    return [*found, (False, text)]


def run(folder: Path, launched: bool, program: str) -> None:
    """Run a program as somebody would; pictures are drawn without a display, devices of CUDA are the CPU."""
    import_path = {"PYTHONPATH": str(ROOT), "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    lines = re.sub(r'"cuda:\d"', '"cpu"', program)
    (folder / "program.py").write_text(lines, encoding="utf-8")
    ranks = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"] if launched else []
    command = [sys.executable, *ranks, "program.py"]
    done = subprocess.run(command, cwd=folder, env=os.environ | import_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.mark.slow
@pytest.mark.xdist_group("gloo")
@pytest.mark.parametrize("page", pages())
def test_every_snippet_runs(page: str, tmp_path: Path) -> None:
    for module, needing in NEEDS.items():
        if page in needing and importlib.util.find_spec(module) is None:
            pytest.skip(f"the snippets of {page} need {module}")
    (tmp_path / "instances").symlink_to(ROOT / "instances")
    if page in FOLDERS:
        name, folder = FOLDERS[page]
        if not folder.exists():
            pytest.skip(f"the snippets of {page} need a folder of profiles beside the repository")
        (tmp_path / name).symlink_to(folder)
    for launched, program in programs(page):
        run(tmp_path, launched, program)


def test_every_prelude_has_a_snippet() -> None:
    for page, number in [*PRELUDES, *LAUNCHED]:
        assert number < len(BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))), page


def test_every_page_is_in_the_contents() -> None:
    tables = [(DOCS / f"{page}.md").read_text(encoding="utf-8") for page in ("index", "algorithms")]
    contents = {name for text in tables for name in re.findall(r"^([\w/]+)$", text, re.MULTILINE)}
    found = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")}
    assert {page for page in found if not page.startswith("api/")} - {"index"} == contents
