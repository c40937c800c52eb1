"""Tiny workloads with known answers; each docstring holds the reasoning that proves its optimum."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from partitioner import DeviceKind, Devices, Graph

ACCELERATOR = "accelerator"


@dataclass(frozen=True)
class Instance:
    """A workload with the value of its best chain; None if there is no chain at all."""

    graph: Graph
    devices: Devices
    optimum: float | None


def chain() -> Instance:
    """0 -> 1 -> 2 of times 3, 1, 2, transfers 0.5: 0 | 1 2 gives 3.5 | 3.5, 0 1 | 2 gives 4.5 | 2.5."""
    graph = Graph.from_arrays({ACCELERATOR: [3.0, 1.0, 2.0]}, [(0, 1), (1, 2)], 0.5)
    return Instance(graph, Devices.accelerated(2), 3.5)


def diamond() -> Instance:
    """One node a (1) -> b, c (4 each) -> d (1), transfers 1, two devices.

    a | b c d gives 10; a b | c d gives 5 + 1 + 1 on both sides, as a c | b d does; a b c | d gives 11;
    one device gives 10. The output of a counts once, although two edges carry it.
    """
    edges = [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    graph = Graph.from_arrays({ACCELERATOR: [1.0, 4.0, 4.0, 1.0]}, edges, 1.0, ids="abcd")
    return Instance(graph, Devices.accelerated(2), 7.0)


def branchy() -> Instance:
    """Node s (1) feeds a -> b (2 + 2) and c -> d (3 + 1) at cost 1; a transfer inside a branch costs 10.

    On three devices s | a b | c d gives 2 | 5 | 5. A branch takes 4 and pays 1 for its input unless s
    is with it, which takes 1 as well; to cut a branch costs 10. So nothing is below 5.
    """
    edges = [("s", "a"), ("a", "b"), ("s", "c"), ("c", "d")]
    cost = [1.0, 10.0, 1.0, 10.0]
    graph = Graph.from_arrays({ACCELERATOR: [1.0, 2.0, 2.0, 3.0, 1.0]}, edges, cost, ids="sabcd")
    return Instance(graph, Devices.accelerated(3), 5.0)


def woven() -> Instance:
    """Edges a -> b and c -> d with colours {a, d} and {b, c}: each class feeds the other.

    A chain cannot part them, so a b c d (10) is one block; e (5) follows at cost 1:
    11 | 6 beats 15 on one device.
    """
    edges = [("a", "b"), ("c", "d"), ("d", "e")]
    graph = Graph.from_arrays(
        {ACCELERATOR: [1.0, 2.0, 3.0, 4.0, 5.0]},
        edges,
        1.0,
        ids="abcde",
        color=["x", "y", "y", "x", None],
    )
    return Instance(graph, Devices.accelerated(2), 11.0)


def training() -> Instance:
    """Forward f1 -> f2, backward b2 -> g -> b1, where no forward node has the colour of g.

    f1 and b1 (1 + 1) share a device, f2 and b2 (1 + 1) do; g takes 5; each transfer costs 0.25.
    The backward pass runs against the chain, so g lies between the two pairs:
    {f1 b1} | {g f2 b2} gives 2.5 | 7.5, its mirror the same, one device 9. To put g alone on a
    device would give 5.5, but {f1 b1 f2 b2} both feeds it and needs it: that is no chain.
    """
    edges = [("f1", "f2"), ("f2", "b2"), ("b2", "g"), ("g", "b1"), ("f1", "b1")]
    graph = Graph.from_arrays(
        {ACCELERATOR: [1.0, 1.0, 1.0, 5.0, 1.0]},
        edges,
        [0.25, 0.0, 0.25, 0.25, 0.0],
        ids=["f1", "f2", "b2", "g", "b1"],
        backward=[False, False, True, True, True],
        color=[1, 2, 2, None, 1],
    )
    return Instance(graph, Devices.accelerated(2), 7.5)


def too_large() -> Instance:
    """Three nodes of size 3, two devices of memory 4: 9 does not fit 8."""
    graph = Graph.from_arrays({ACCELERATOR: [1.0, 1.0, 1.0]}, [(0, 1), (1, 2)], size=3.0)
    return Instance(graph, Devices.accelerated(2, memory=4.0), None)


def badly_packed() -> Instance:
    """Three nodes of size 3, two devices of memory 5: 9 fits 10, but no two nodes fit one device."""
    graph = Graph.from_arrays({ACCELERATOR: [1.0, 1.0, 1.0]}, [(0, 1), (1, 2)], size=3.0)
    return Instance(graph, Devices.accelerated(2, memory=5.0), None)


def accelerator_only() -> Instance:
    """As `badly_packed` with memory 4 and a CPU that may run nothing: 9 does not fit the accelerators' 8."""
    graph = Graph.from_arrays(
        {ACCELERATOR: [1.0] * 3, "cpu": [1.0] * 3},
        [(0, 1), (1, 2)],
        size=3.0,
        allowed={"cpu": False},
    )
    return Instance(graph, Devices.accelerated(2, memory=4.0, cpus=1), None)


def zero() -> Instance:
    """Nothing takes time and no transfer costs: any chain has value 0."""
    graph = Graph.from_arrays({ACCELERATOR: [0.0, 0.0, 0.0]}, [(0, 1), (1, 2)])
    return Instance(graph, Devices.accelerated(2), 0.0)


def unsupported() -> Instance:
    """Only the CPU may run b (3) of a -> b -> c; a and c take 1 on an accelerator, 10 on the CPU.

    b costs 3 on the CPU whatever else happens, and a | b | c gives 1.5 | 3 | 1.5.
    """
    graph = Graph.from_arrays(
        {ACCELERATOR: [1.0, 1.0, 1.0], "cpu": [10.0, 3.0, 10.0]},
        [("a", "b"), ("b", "c")],
        0.5,
        ids="abc",
        allowed={ACCELERATOR: [True, False, True]},
    )
    return Instance(graph, Devices.accelerated(2, cpus=1), 3.0)


def three_kinds() -> Instance:
    """Edges x -> y -> z of cost 1; a fast device, one half as fast, and a host that pays nothing.

    z takes 4 on the fast device, and 1 for its input or 2 for y; 8 on the slow one; 5 on the host.
    So nothing is below 5, and x | y | z on slow, fast, host gives 3 | 4 | 5.
    """
    kinds = (DeviceKind("fast", 1), DeviceKind("slow", 1), DeviceKind("host", 1, None, False))
    time = {"fast": [1.0, 2.0, 4.0], "slow": [2.0, 4.0, 8.0], "host": [10.0, 20.0, 5.0]}
    graph = Graph.from_arrays(time, [("x", "y"), ("y", "z")], 1.0, ids="xyz")
    return Instance(graph, Devices(kinds), 5.0)


def two_tensors() -> Instance:
    """Node u (1) sends one tensor of cost 1 to v (4) and another of cost 5 to w (4).

    u w | v gives 6 | 5; u v | w gives 10; u | v w gives 7 | 14; one device 9.
    """
    graph = Graph.from_arrays({ACCELERATOR: [1.0, 4.0, 4.0]}, [("u", "v"), ("u", "w")], [1.0, 5.0], ids="uvw")
    return Instance(graph, Devices.accelerated(2), 6.0)


def _three_stages(communication: str, optimum: float) -> Instance:
    graph = Graph.from_arrays({ACCELERATOR: [2.0, 2.0, 2.0]}, [(0, 1), (1, 2)], 1.5)
    return Instance(graph, Devices.accelerated(3, communication=communication), optimum)


def sequential() -> Instance:
    """Three nodes of 2, transfers 1.5: three stages give 2 + 1.5 + 1.5 = 5, two 5.5, one 6."""
    return _three_stages("sequential", 5.0)


def overlapped() -> Instance:
    """As `sequential`, with three stages the larger of 2 and 1.5 + 1.5; two stages give 4."""
    return _three_stages("overlapped", 3.0)


def duplex() -> Instance:
    """As `sequential`, with three stages the largest of 1.5, 2 and 1.5: no node takes less than 2."""
    return _three_stages("duplex", 2.0)


def lone() -> Instance:
    """One node on four devices: its time, 7."""
    return Instance(Graph.from_arrays({ACCELERATOR: [7.0]}), Devices.accelerated(4), 7.0)


SOLVABLE: tuple[Callable[[], Instance], ...] = (
    chain, diamond, branchy, woven, training, zero, unsupported, three_kinds,
    two_tensors, sequential, overlapped, duplex, lone,
)  # fmt: skip
INFEASIBLE: tuple[Callable[[], Instance], ...] = (too_large, badly_packed, accelerator_only)


def document() -> dict[str, Any]:
    """A workload file that uses every field: four forward nodes, two backward ones, a CPU."""
    rows = [(1, 2.0, 0, 1), (2, 3.0, 0, 2), (3, 1.0, 0, 3), (4, 2.5, 0, 4), (5, 4.0, 1, 2), (6, 3.0, 1, 1)]
    nodes = [
        {
            "id": node,
            "name": f"layer {node}",
            "supportedOnFpga": 1,
            "cpuLatency": 10 * time,
            "fpgaLatency": time,
            "isBackwardNode": backward,
            "colorClass": color,
            "layerId": color,
            "size": 100.0 * node,
        }
        for node, time, backward, color in rows
    ]
    pairs = [(1, 2, 0.5), (1, 3, 0.5), (2, 4, 0.25), (3, 4, 0.25), (4, 5, 0.0), (5, 6, 0.5)]
    edges = [{"sourceId": source, "destId": target, "cost": cost} for source, target, cost in pairs]
    return {"maxSizePerFPGA": 2000.0, "maxFPGAs": 2, "maxCPUs": 1, "nodes": nodes, "edges": edges}


def write(folder: Path, content: Any, name: str = "workload.json") -> Path:
    """Write a document as JSON, or a text or bytes as they are."""
    path = folder / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path
