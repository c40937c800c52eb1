"""The files of line balancing (SALBP) and of worker assignment (ALWABP) as workloads for throughput."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import partitioner as pt

Edges = list[tuple[int, int]]
END = "-1"  # the last line begins with it; what follows is a comment
CANNOT = "Inf"  # the time of a worker who cannot do the task


def line_balancing(file: Path, stations: int) -> pt.Workload:
    """Return the tasks of an IN2 file on equal stations: n, n times, pairs of tasks, a line of ``-1,-1``."""
    words = file.read_text(encoding="latin-1").partition(END)[0].replace(",", " ").split()
    tasks = int(words[0])
    times = {"accelerator": [float(word) for word in words[1 : tasks + 1]]}
    graph = pt.Graph.from_arrays(times, _edges(words[tasks + 1 :]))
    return pt.Workload(graph, pt.Devices.accelerated(stations))


def worker_assignment(file: Path) -> pt.Workload:
    """Return the tasks of a file with a time for every task and worker, and a kind for every worker."""
    text = file.read_text(encoding="latin-1").partition(END)[0]
    lines = [line.split() for line in text.splitlines()]
    tasks = int(lines[0][0])
    rows = lines[1 : tasks + 1]
    times, allowed = {}, {}
    for worker, column in enumerate(zip(*rows, strict=True)):
        name = f"worker {worker}"
        allowed[name] = [word != CANNOT for word in column]
        times[name] = [0.0 if word == CANNOT else float(word) for word in column]
    words = [word for line in lines[tasks + 1 :] for word in line]
    graph = pt.Graph.from_arrays(times, _edges(words), allowed=allowed)
    return pt.Workload(graph, pt.Devices(tuple(pt.DeviceKind(name, 1) for name in times)))


def random_workers(file: Path, workers: int, unlike: bool, cannot: float, seed: int) -> pt.Workload:
    """Return the tasks of an IN2 file with random whole times t for every worker.

    Times are from 1 to the file's time, or from it to three times that if workers are `unlike`; a worker
    cannot do a task with the probability `cannot`.
    """
    line, random = line_balancing(file, 1).graph, np.random.default_rng(seed)
    mean = line.time[0].astype(int)
    low, high = (mean, 3 * mean) if unlike else (np.ones_like(mean), mean)
    times = random.integers(low, high + 1, (workers, len(mean))).astype(float)
    can = random.random(times.shape) >= cannot
    can[random.integers(workers, size=len(mean)), np.arange(len(mean))] |= ~can.any(axis=0)
    names = [f"worker {worker}" for worker in range(workers)]
    kinds = tuple(pt.DeviceKind(name, 1) for name in names)
    graph = pt.Graph.from_arrays(
        dict(zip(names, times, strict=True)), line.edges.tolist(), allowed=dict(zip(names, can, strict=True))
    )
    return pt.Workload(graph, pt.Devices(kinds))


def _edges(words: list[str]) -> Edges:
    """Return the pairs, numbered from 0."""
    numbers = [int(word) - 1 for word in words]
    return list(zip(numbers[::2], numbers[1::2], strict=True))
