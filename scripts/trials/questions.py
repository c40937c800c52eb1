"""Random questions about loads, pipelines and latency, with the oracles that know the answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import partitioner as pt
from tests.oracle import best_values
from tests.oracle_alternatives import best_value
from tests.oracle_latency import best_latency
from tests.oracle_paper import listed, objective_value, paper_values, tensors_of
from tests.oracle_paper_latency import paper_latency
from tests.oracle_pipelines import best_pipeline
from tests.random_alternatives import batch_case, devices_of, options_of
from tests.random_alternatives import random_case as random_alternatives
from tests.random_limits import FIELDS, random_constraints, with_layers
from tests.random_pipelines import FEATURES, random_case
from tests.random_workloads import uneven_workload
from trials.question import Question

CHAIN_METHODS = ("auto", "auto", "auto", "dp", "dpl", "pipedream_path", "single_device")
SPLIT_METHODS = ("ip", "ip", "ip", "local_search", "single_device")
PLACERS = ("heft", "m-etf")  # for free splits
LATENCY_METHODS = ("latency_ip", "latency_ip", "latency_search", "latency_dp", "greedy", "max_load")
LITTLE = 600  # placements that the plain oracle tries in a blink
Rng = np.random.Generator


def agreed(*answers: float | None) -> float:
    """The answer of all oracles; a disagreement among them is a failure of its own."""
    found = [math.inf if answer is None else answer for answer in answers]
    if not np.allclose(found, found[0], rtol=1e-9, atol=1e-12):
        raise AssertionError(f"the oracles disagree: {found}")
    return found[0]


def chains(rng: Rng) -> Question:
    """Loads and GPipe's sum over chains, in three models of communication."""
    graph, devices = uneven_workload(rng, 8, 3)
    method = str(rng.choice(CHAIN_METHODS))
    known = ["throughput"] if method == "pipedream_path" else ["throughput", "gpipe"]
    objective = str(rng.choice(known))
    exact = method in ("auto", "dp")
    row, options = f"chains, {objective}", {"method": method, "split": "chain"}
    return Question(row, graph, devices, objective, options, _best_split("chain"), _worth, exact)


def splits(rng: Rng) -> Question:
    """Loads and GPipe's sum over convex and free splits."""
    graph, devices = uneven_workload(rng, 7, 3)
    objective, split = str(rng.choice(["throughput", "gpipe"])), str(rng.choice(["convex", "free"]))
    method = str(rng.choice(SPLIT_METHODS if split == "convex" else SPLIT_METHODS + PLACERS))
    options: dict[str, Any] = {"method": method, "split": split, "workers": 1}
    if method == "local_search":
        options["time_limit"] = 0.2
    row = f"{split} splits, {objective}"
    return Question(row, graph, devices, objective, options, _best_split(split), _worth, method == "ip")


def limits(rng: Rng) -> Question:
    """Free and convex splits with constraints."""
    graph, devices = uneven_workload(rng, 6, 3)
    graph = with_layers(graph, rng)
    fields = [str(rng.choice(FIELDS))] if rng.random() < 0.7 else list(FIELDS[:3])
    split = str(rng.choice(["convex", "free"]))
    options = {
        "method": "ip",
        "split": split,
        "workers": 1,
        "constraints": random_constraints(rng, graph, devices, fields),
    }

    def oracle(asked: Question) -> float:
        demands = asked.options["constraints"]
        return agreed(best_values(asked.graph, asked.devices, asked.objective, constraints=demands)[split])

    return Question("constraints, ip", graph, devices, "throughput", options, oracle)


def pipelines(rng: Rng) -> Question:
    """Chains with replicas, levels, memory by stage, constraints and batches, in any mixture."""
    return _extended(rng, "pipelines", [name for name in FEATURES if rng.random() < 0.4])


def groups(rng: Rng) -> Question:
    """The same over explicit groups in place of levels, with links by pair."""
    others = [name for name in FEATURES if name != "levels" and rng.random() < 0.3]
    return _extended(rng, "groups", ["groups", *others])


def _extended(rng: Rng, name: str, features: list[str]) -> Question:
    case = random_case(rng, features, 6, 4 + int(rng.integers(2)))
    given = {"replicas": case.replicas, "schedule": case.schedule, "microbatches": case.microbatches}
    options: dict[str, Any] = {name: value for name, value in given.items() if value not in (None, 1)}
    options |= {} if case.constraints.empty else {"constraints": case.constraints}
    if case.objective == "batch" or case.schedule == "gpipe":
        options["microbatches"] = case.microbatches
    elif case.schedule is None:
        options.pop("microbatches", None)

    def oracle(asked: Question) -> float:
        limits = (case.constraints, case.replicas, case.schedule, options.get("microbatches"))
        return agreed(best_pipeline(asked.graph, asked.devices, *limits, case.objective))

    row = f"{name}, " + ("batch" if case.objective == "batch" else "throughput")
    exact = name == "pipelines"
    whole = case.replicas > 1 and bool(case.devices.levels or case.devices.groups)  # groups taken whole
    return Question(row, case.graph, case.devices, case.objective, options, oracle, exact=exact, narrow=whole)


def alternatives(rng: Rng) -> Question:
    """Chains whose nodes run in several ways, with copies, schedules and both models of a stage."""
    case = random_alternatives(rng) if rng.random() < 0.7 else batch_case(rng)
    method = str(rng.choice(["alternatives", "alternatives", *([] if case.batch else ["piper", "two_bw"])]))

    def oracle(asked: Question) -> float:
        return agreed(best_value(replace(case, graph=asked.graph)))

    options = options_of(case) | {"method": method}
    objective = options.pop("objective")
    exact = method == "alternatives"
    return Question(
        f"alternatives, {'batch' if case.batch else method}",
        case.graph,
        devices_of(case),
        objective,
        options,
        oracle,
        exact=exact,
    )


def latencies(rng: Rng) -> Question:
    """The time of one sample with up to two subgraphs of each pass on an accelerator."""
    graph, devices = uneven_workload(rng, 5, 2)
    kinds = tuple(pt.DeviceKind(**{**vars(kind), "transfer_factor": 1.0}) for kind in devices.kinds)
    devices = pt.Devices(kinds, devices.communication)
    method, subgraphs = str(rng.choice(LATENCY_METHODS)), int(rng.integers(1, 3))
    options = {"method": method, "subgraphs_per_accelerator": subgraphs, "time_limit": 10.0, "workers": 1}

    def oracle(asked: Question) -> float:
        answers = [paper_latency(asked.graph, asked.devices, subgraphs)]
        if len(asked.graph) <= 4:
            answers.append(best_latency(asked.graph, asked.devices, subgraphs))
        return agreed(*answers)

    return Question("latency", graph, devices, "latency", options, oracle, exact=method == "latency_ip")


def _best_split(split: str) -> Callable[[Question], float]:
    def oracle(asked: Question) -> float:
        answers = [best_values(asked.graph, asked.devices, asked.objective)[split]]
        if len(asked.devices.names) ** len(asked.graph) <= LITTLE:
            answers.append(paper_values(asked.graph, asked.devices, asked.objective)[split])
        return agreed(*answers)

    return oracle


def _worth(asked: Question, plan: pt.Plan) -> float:
    """What the placement is worth by the oracle that was written from the paper."""
    number = {name: d for d, name in enumerate(asked.devices.names)}
    placed = [number[plan.placement[node]] for node in asked.graph.ids]
    kinds, tensors = listed(asked.devices), tensors_of(asked.graph)
    model = asked.devices.communication
    return objective_value(asked.graph, model, kinds, tensors, placed, asked.objective, 1)
