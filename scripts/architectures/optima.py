"""The index of the committed instances: the optimum of each, for others to compare with."""

import json
from pathlib import Path
from typing import Any

from partitioner import load, solve

INDEX = "index.json"


def optimum(path: Path) -> dict[str, Any]:
    """Solve one instance exactly and describe what was found.

    Parameters
    ----------
    path : Path
        The workload file.

    Returns
    -------
    dict
        `optimum` (ms per sample), `status`, `ideals`, `nodes`, and the hash of what was solved.
    """
    workload = load(path)
    plan = solve(workload.graph, workload.devices)
    return {
        "optimum": plan.value,
        "bound": plan.bound,
        "status": plan.status,
        "objective": plan.objective,
        "split": plan.split,
        "nodes": len(workload.graph),
        "ideals": plan.statistics.get("ideals"),
        "workload_sha256": plan.workload_sha256,
    }


def write_optima(folder: Path) -> None:
    """Solve every instance of a folder and write the index beside them."""
    paths = sorted(path for path in folder.glob("*.json") if path.name != INDEX)
    index = {path.stem: optimum(path) for path in paths}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    for name, entry in index.items():
        print(f"{name}: {entry['optimum']:.6g} ({entry['status']})")
