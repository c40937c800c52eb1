"""Random questions about operators one by one, and simulated pipelines held to a slow second opinion."""

from __future__ import annotations

import numpy as np

import partitioner as pt
from partitioner.schedule import Timeline, simulate
from partitioner.schedule.passes import Passes, split_backward
from partitioner.schedule.reading import read_passes
from tests.oracle_paper_makespan import paper_makespan, time_of
from tests.random_pipelines import random_case
from tests.random_workloads import in_known_order, uneven_workload
from tests.schedule.replay import contradictions, recomputed
from trials.campaign import Trial
from trials.question import Question
from trials.source import workload_source

PLACERS = ("auto", "heft", "etf", "m-topo", "m-etf", "m-sct", "dpos", "celeritas", "order-place", "metis")
SCHEDULES = ("single_stream", "inference", "gpipe", "1f1b", "1f1b_async", "interleaved", "zb-h1")
Rng = np.random.Generator


def makespans(rng: Rng) -> Question:
    """When the last operator ends, with transfers that do not hinder one another."""
    graph, devices = uneven_workload(rng, 5, 3)
    graph = in_known_order(graph)
    lines = (pt.Transfers(), pt.Transfers(0.5, 0.25), pt.Transfers(intercept=1.0))
    transfers = lines[int(rng.integers(3))]
    method = str(rng.choice(PLACERS))
    options = {"method": method, "transfers": transfers, "time_limit": 0.2}

    def oracle(asked: Question) -> float:
        return paper_makespan(asked.graph, asked.devices, transfers)

    def worth(asked: Question, plan: pt.Plan) -> float:
        number = {name: d for d, name in enumerate(asked.devices.names)}
        placed = [number[plan.placement[node]] for node in asked.graph.ids]
        order = [asked.graph.position[node] for node in plan.execution_order or ()]
        return time_of(asked.graph, asked.devices, transfers, placed, order)

    return Question("makespan", graph, devices, "makespan", options, oracle, worth, exact=False)


def simulations(rng: Rng, command: str) -> Trial:
    """A schedule of a random pipeline is possible, wastes no time, and takes as long as its work at least."""
    case = random_case(rng, ["memory"], 8, 4)
    kinds = [kind for kind in case.devices.kinds if kind.row in case.graph.kinds]
    names = [kind.device(i) for kind in kinds for i in range(kind.count)]
    placement = {node: str(rng.choice(names)) for node in case.graph.ids}
    schedule, count = str(rng.choice(SCHEDULES)), int(rng.integers(1, 7))
    call = f"simulate(graph, devices, {placement!r}, {schedule!r}, {count})"
    paste = f"{command}\n{workload_source(case.graph, case.devices)}"
    paste += f"\nfrom partitioner.schedule import simulate\nprint({call}.makespan)"
    try:
        found = simulate(case.graph, case.devices, placement, schedule, count)
    except pt.PartitionerError as error:
        return Trial("simulation", type(error).__name__)
    except Exception as error:  # whatever escapes is what these trials look for
        return Trial("simulation", "exception", f"{type(error).__name__}: {error}", paste)
    passes = read_passes(case.graph, case.devices, placement)
    passes = split_backward(passes, 0.5) if schedule == "zb-h1" else passes
    return Trial("simulation", "timeline", wrong_with(found, passes, case.devices), paste)


def wrong_with(found: Timeline, passes: Passes, devices: pt.Devices) -> str:
    """What the second opinion says against a timeline; empty if nothing."""
    against = contradictions(found, passes, devices.communication)
    if against:
        return against[0]
    if devices.communication == "sequential" and found.schedule != "single_stream":
        expected = np.array(list(recomputed(found, passes).values()))
        if not np.allclose(expected, found.begin[:, 0], rtol=1e-12, atol=1e-12):
            return f"passes begin at {found.begin[:, 0].tolist()}, could at {expected.tolist()}"
    slowest = found.bound * found.table.microbatches
    if found.makespan < slowest * (1 - 1e-9):
        return f"the makespan {found.makespan!r} is below the work of a device, {slowest!r}"
    return ""
