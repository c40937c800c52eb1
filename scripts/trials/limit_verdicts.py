"""What is true of the answer of a call with a time limit."""

from __future__ import annotations

from typing import Any

import partitioner as pt
from partitioner.methods.registry import METHODS
from trials.limit_calls import Call
from trials.limit_graphs import filled_chain

HEEDLESS = (  # methods that are documented to look at less than all rules, or at one device
    *("single_device", "metis", "scotch", "pipedream", "pipedream_path", "greedy", "max_load"),
    *("local_search_baseline",),
)
PLACERS = tuple(name for name, info in METHODS.items() if info.places_operators)


def wrong_plan(call: Call, plan: pt.Plan) -> str:
    """What is untrue of a plan: it breaks a rule, or is worse than a chain that is known at once."""
    wanted: dict[str, Any] = {
        name: call.options[name] for name in ("schedule", "microbatches") if name in call.options
    }
    objective = "throughput" if "schedule" in wanted else call.objective
    wanted |= {"subgraphs": plan.subgraphs} if call.objective == "latency" else {}
    found = pt.evaluate(call.graph, call.devices, plan.placement, objective, **wanted)
    if not found.feasible:
        return f"the plan breaks a rule: {found.violations[0]}"
    if plan.bound > plan.value * (1 + 1e-9):
        return f"the bound {plan.bound!r} exceeds the value {plan.value!r}"
    simple = filled_chain(call.graph, call.devices) if call.options.get("method") is None else None
    if simple is None or call.objective not in ("throughput", "gpipe"):
        return ""
    known = pt.evaluate(call.graph, call.devices, simple, call.objective)
    poor = known.feasible and plan.value > known.value * (1 + 1e-9)
    return f"the plan takes {plan.value:.6g}, a chain of {known.value:.6g} is known at once" if poor else ""


def wrong_error(call: Call, error: Exception | None) -> str:
    """What is untrue of an error: it is none of ours, or a plan is known."""
    if isinstance(error, pt.ContradictionError) or not isinstance(error, pt.PartitionerError):
        return f"{type(error).__name__}: {error}"
    method = call.options.get("method")
    unheeding = call.objective == "latency" and method in PLACERS  # they know no subgraphs, and say so
    if isinstance(error, pt.BackendUnavailable | pt.OptionError) or method in HEEDLESS or unheeding:
        return ""
    if "schedule" in call.options or filled_chain(call.graph, call.devices) is None:
        return ""
    return f"a plan is known, yet: {type(error).__name__}: {error}"
