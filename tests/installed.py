"""Distributions that are installed for the time of a test: a folder with modules and their entry points."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(folder: Path, distribution: str, modules: Mapping[str, str], points: Mapping[str, str]) -> None:
    """Write what pip would have written to `folder`.

    `modules` has the source of every module by its name, `points` the lines of every group of entry points.
    """
    folder.mkdir(exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    record = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    record.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    (record / "METADATA").write_text(metadata, encoding="utf-8")
    groups = "\n".join(f"[{group}]\n{lines}\n" for group, lines in points.items())
    (record / "entry_points.txt").write_text(groups, encoding="utf-8")
