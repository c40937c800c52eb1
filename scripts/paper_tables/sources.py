"""Where the files of the published workloads lie, in either of two folder layouts."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from paper_tables.catalogue import CATALOGUE, LAYERS, Entry

PUBLIC_FOLDER = "{task}-inputs"


@dataclass(frozen=True)
class Source:
    """The files of one workload; `expert` is its hand-made split, None if there is none."""

    entry: Entry
    workload: Path
    expert: Path | None


def find_sources(folder: Path, only: Collection[str] = (), task: str = "throughput") -> list[Source]:
    """Find the workloads of a folder, in the order of the paper's tables.

    Parameters
    ----------
    folder
        Either ``TASK/NAME.json`` and ``experts/NAME.json`` lie in it, or it is a checkout of
        msr-fiddle/dnn-partitioning.
    only
        Names to look for; all that are there by default.
    task
        ``"throughput"`` or ``"latency"``.

    Raises
    ------
    FileNotFoundError
        If a workload asked for, or every workload, is missing.
    """
    locate = _public if (folder / PUBLIC_FOLDER.format(task=task)).is_dir() else _flat
    wanted = [entry for entry in CATALOGUE if not only or entry.name in only]
    sources = [locate(folder, entry, task) for entry in wanted]
    present = [source for source in sources if source.workload.is_file()]
    if not present or (only and len(present) < len(sources)):
        missing = next(source.workload for source in sources if source not in present)
        raise FileNotFoundError(f"{missing}: no such file")
    return present


def _flat(folder: Path, entry: Entry, task: str) -> Source:
    experts = folder / "experts"
    expert = _expert(entry, [experts / f"{name}.json" for name in _with_inference(entry.name)])
    return Source(entry, folder / task / f"{entry.name}.json", expert)


def _public(folder: Path, entry: Entry, task: str) -> Source:
    experts = folder / "human-experts"
    expert = _expert(entry, [experts / f"{stem}_expert.json" for stem in _with_inference(entry.stem)])
    return Source(
        entry, folder / PUBLIC_FOLDER.format(task=task) / entry.folder / f"{entry.stem}.json", expert
    )


def _with_inference(name: str) -> list[str]:
    """A training graph without a split of its own takes the one for inference."""
    return [name, name.replace("_training", "_inference")]


def _expert(entry: Entry, candidates: list[Path]) -> Path | None:
    present = [path for path in candidates if entry.folder == LAYERS and path.is_file()]
    return present[0] if present else None
