"""An exhaustive oracle of pipelines with several stages on a device: every chain on every number of devices.

It shares no code with the package's methods or its evaluator. The samples in flight are counted in tables of
passes, which are those of torch (``tests/schedule/test_torch_tables.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np

from partitioner import Devices, Graph
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.virtual_stages.schedules import VIRTUAL
from tests.oracle import arcs
from tests.oracle_pipelines import atoms
from tests.oracle_stages import Floats, Rows, Splits, Stage, loads_of_stages


def best_virtual_stages(
    graph: Graph,
    devices: Devices,
    schedule: str,
    chunks: int,
    microbatches: int,
    constraints: Constraints = NONE,
) -> float | None:
    """The least largest load over all chains of `chunks` stages on each of some devices, in every order."""
    best, every = np.inf, [i for i, kind in enumerate(devices.kinds) for _ in range(kind.count)]
    for count in range(1, len(every) + 1):
        if VIRTUAL[schedule].rule(count, microbatches):
            continue
        if constraints.use_all_devices and count < len(every):
            continue
        stages = count * chunks
        position = np.array(list(chains(graph, atoms(graph, constraints), stages, constraints)))
        if not len(position) or constraints.stages not in (None, stages):
            continue
        ranks = ranks_of(schedule, count, chunks)
        splits = Splits(graph, ranks[position], count)
        memory = memory_of(graph, position, ranks, schedule, count, chunks, microbatches)
        for order in sorted(set(permutations(every, count))):
            rooms = [devices.kinds[kind].memory for kind in order]
            room = np.array([np.inf if each is None else each for each in rooms])
            sound = (memory <= room * (1 + 1e-9)).all(axis=1)
            sound &= splits.fits[:, order, range(count)].all(axis=1)
            dealt = [Stage(kind, (order[:i].count(kind),), (i,)) for i, kind in enumerate(order)]
            load = loads_of_stages(splits, devices, dealt)[0]
            best = min(best, float(load.max(axis=1)[sound].min(initial=np.inf)))
    return None if best == np.inf else best


def ranks_of(schedule: str, devices: int, chunks: int) -> Rows:
    """Shape (stages,): the rank of every stage."""
    if schedule in ("zbv", "dualpipev"):
        return np.array([*range(devices), *reversed(range(devices))])
    return np.arange(devices * chunks) % devices


def memory_of(
    graph: Graph, position: Rows, ranks: Rows, schedule: str, devices: int, chunks: int, microbatches: int
) -> Floats:
    """Shape (splits, devices): the most that each device holds at once."""
    stages = Splits(graph, position, devices * chunks)
    parameters, gradients, optimizer, activations, _ = stages.parts
    once = stages.size + parameters + gradients + optimizer
    found = np.zeros((len(position), devices))
    for rank in range(devices):
        own = np.flatnonzero(ranks == rank)
        held, most = np.zeros(chunks), np.zeros(len(position))
        row = VIRTUAL[schedule].row(rank, devices, chunks, microbatches)
        last = max(row.direction.tolist())  # B, or W where backward passes are halved
        for chunk, direction in zip(row.chunk.tolist(), row.direction.tolist(), strict=True):
            held[chunk] += direction == 0
            most = np.maximum(most, activations[:, own] @ held)
            held[chunk] -= direction == last
        found[:, rank] = once[:, own].sum(axis=1) + most + stages.workspace[:, own].max(axis=1)
    return found


def chains(graph: Graph, atom: Rows, count: int, constraints: Constraints = NONE) -> Iterator[Rows]:
    """Every split into `count` stages in which no arc leads back, as the stage of every node."""
    pairs = {(int(atom[u]), int(atom[v])) for u, v in arcs(graph)}
    n = int(atom.max()) + 1

    def closed(mask: int) -> bool:
        return all(mask >> u & 1 or not mask >> v & 1 for u, v in pairs)

    ideals = [mask for mask in range(1 << n) if closed(mask)]

    def grown(chain: list[int]) -> Iterator[list[int]]:
        if len(chain) == count:
            yield [*chain, (1 << n) - 1]
            return
        for mask in ideals:
            if mask & chain[-1] == chain[-1] and mask != chain[-1] and mask != (1 << n) - 1:
                yield from grown([*chain, mask])

    for chain in grown([0]) if count <= n else ():
        stage = np.array([next(i for i, mask in enumerate(chain[1:]) if mask >> a & 1) for a in range(n)])[
            atom
        ]
        if _obeys(graph, stage, count, constraints):
            yield stage


def _obeys(graph: Graph, stage: Rows, count: int, constraints: Constraints) -> bool:
    least, most = constraints.nodes_per_stage
    nodes = np.bincount(stage, minlength=count)
    layers = [len({*graph.layer[stage == i].tolist()} - {-1}) for i in range(count)]
    few, many = constraints.layers_per_stage
    sound = nodes.min() >= (least or 1) and nodes.max() <= (most or len(stage))
    sound &= min(layers) >= (few or 0) and max(layers) <= (np.inf if many is None else many)
    if constraints.neighbours_only:
        sound &= bool((abs(np.diff(stage[graph.edges], axis=1)) <= 1).all())
    return bool(sound)
