"""The index of the committed profiles: what PipeDream's planner predicts, and the optimum of the workload."""

import json
from pathlib import Path
from typing import Any

from partitioner import solve
from partitioner.formats.pipedream import load_pipedream, read_profile
from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.plan import plan

INDEX = "index.json"
PCI_EXPRESS, ETHERNET = 12e9, 1.25e9
MACHINES = ([(4, PCI_EXPRESS)], [(4, PCI_EXPRESS), (4, ETHERNET)])
ACCELERATORS, MEMORY = 4, 16 * 2.0**30
MS_PER_SECOND = 1e3


def planner_layers(path: Path) -> Layers:
    """Return what the planner sees of a profile, times in seconds."""
    profile = read_profile(path).trimmed()
    time = (profile.forward + profile.backward) / MS_PER_SECOND
    return Layers(time, profile.activation, profile.parameters, profile.edges)


def predictions(path: Path) -> dict[str, Any]:
    """Plan and solve one profile.

    Parameters
    ----------
    path : Path
        The profile.

    Returns
    -------
    dict
        For either set of states how many there are, and for some machines the predicted time in
        seconds, the data-parallel time, and the layers and machines of each stage; `optimum` is the
        best chain (ms per minibatch) of the workload made of the profile.
    """
    layers = planner_layers(path)
    workload = load_pipedream(
        path, bandwidth=PCI_EXPRESS, accelerators=ACCELERATORS, memory=MEMORY, trimmed=True
    )
    solved = solve(workload.graph, workload.devices)
    return {
        "nodes": len(layers),
        "antichains": _plans(layers, "antichains"),
        "ideals": _plans(layers, "ideals"),
        "optimum": solved.value,
        "status": solved.status,
        "workload_sha256": solved.workload_sha256,
    }


def write_predictions(folder: Path) -> None:
    """Plan every profile of a folder and write the index beside them."""
    index = {path.stem: predictions(path) for path in sorted(folder.glob("*.txt"))}
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    for name, entry in index.items():
        print(f"{name}: {entry['antichains']['plans'][0]['time']:.6g} s, optimum {entry['optimum']:.6g} ms")


def _plans(layers: Layers, states: str) -> dict[str, Any]:
    found = [plan(layers, levels, states=states) for levels in MACHINES]
    return {
        "states": found[0].states,
        "plans": [
            {
                "levels": [list(level) for level in levels],
                "time": planned.time,
                "data_parallel_time": planned.data_parallel_time,
                "stages": [[len(stage.layers), stage.machines] for stage in planned.stages],
            }
            for levels, planned in zip(MACHINES, found, strict=True)
        ],
    }
