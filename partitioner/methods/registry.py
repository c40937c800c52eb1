"""The methods by name; their modules load when they are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from partitioner.errors import BackendUnavailable, OptionError
from partitioner.methods.imported import imported
from partitioner.methods.method import Method


@dataclass(frozen=True)
class MethodInfo:
    """What is known of a method before it is loaded.

    Parameters
    ----------
    name
        As in ``solve(method=...)``.
    place
        Module and function.
    objectives, splits, backends
        What it can be asked for.
    guarantee
        What its plans are worth, in words.
    features
        What it knows beyond stages of one device each on equal links, see
        :meth:`partitioner.regime.Regime.features`.
    """

    name: str
    place: str
    objectives: tuple[str, ...]
    splits: tuple[str, ...]
    backends: tuple[str, ...]
    guarantee: str
    features: tuple[str, ...] = ()

    @property
    def places_operators(self) -> bool:
        """Is it a list scheduler, or like one?"""
        return "operators" in self.features

    def splits_for(self, objective: str) -> tuple[str, ...]:
        """The splits that it can be asked for with that objective."""
        if not self.places_operators:
            return self.splits
        return ("convex",) if objective == "latency" else ("free",)

    def load(self) -> Method:
        """Import the method's module and return the method."""
        return cast(Method, imported(self.place))


PLACED = ("makespan", "throughput", "gpipe", "latency")
OPERATORS = ("operators", "levels")
PARTITIONED = ("throughput", "gpipe", "makespan")
_METHODS = (
    MethodInfo(
        "dp",
        "partitioner.methods.dp.exact:solve_exact",
        ("throughput",),
        ("chain",),
        ("numba",),
        "optimal where the ideals fit the memory budget; else as dpl",
    ),
    MethodInfo(
        "ip",
        "partitioner.methods.ip.solve:solve_ip",
        ("throughput", "gpipe"),
        ("convex", "free"),
        ("gurobi", "scip", "highs", "cpsat", "cbc"),
        "optimal within the gap, or the best plan and bound at the time limit",
        ("limits",),
    ),
    MethodInfo(
        "dpl",
        "partitioner.methods.dp.linear:solve_linear",
        ("throughput",),
        ("chain",),
        ("numba",),
        "best over linear orders, with a lower bound",
    ),
    MethodInfo(
        "pipeline",
        "partitioner.methods.pipeline.solve:solve_pipeline",
        ("throughput", "batch"),
        ("chain",),
        ("numba",),
        "as dp, with replicas, levels of links, memory by stage and limits on stages",
        ("replicas", "levels", "schedule", "limits"),
    ),
    MethodInfo(
        "simulated",
        "partitioner.methods.pipeline.solve:solve_pipeline",
        ("makespan",),
        ("chain",),
        ("numba",),
        "the best plans of pipeline under a simulated schedule, then moved boundaries, with a lower bound",
        ("replicas", "levels", "schedule", "limits"),
    ),
    MethodInfo(
        "local_search",
        "partitioner.methods.local_search.method:solve_local_search",
        ("throughput", "gpipe"),
        ("convex", "free"),
        ("numba",),
        "annealing with moves of nodes, nets and clusters, with a lower bound",
    ),
    MethodInfo(
        "local_search_baseline",
        "partitioner.methods.local_search.baseline:solve_baseline",
        ("throughput", "gpipe"),
        ("free",),
        ("numba",),
        "the paper's baseline: best single moves from ten random starts, with a lower bound",
    ),
    MethodInfo(
        "pipedream_path",
        "partitioner.methods.dp.path:solve_path",
        ("throughput",),
        ("chain",),
        ("numba",),
        "the paper's baseline: best chain that keeps branchings whole, with a lower bound",
    ),
    MethodInfo(
        "pipedream",
        "partitioner.methods.pipedream.solve:solve_pipedream",
        ("throughput",),
        ("chain",),
        ("numba",),
        "PipeDream's planner: best for the time it predicts, on one kind of device; with a lower bound",
        ("replicas", "levels"),
    ),
    MethodInfo(
        "single_device",
        "partitioner.methods.single:solve_single",
        ("throughput", "gpipe"),
        ("chain", "convex", "free"),
        ("numpy",),
        "baseline: everything on one device, with a lower bound",
    ),
    MethodInfo(
        "heft",
        "partitioner.methods.list_scheduling.heft:solve_heft",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "HEFT: by upward rank, each operator where it ends first; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "dpos",
        "partitioner.methods.list_scheduling.fastt.dpos:solve_dpos",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "FastT's DPOS: the critical path on one device, all else where it ends first; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "portfolio",
        "partitioner.methods.list_scheduling.portfolio:solve_portfolio",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "the best of all quick list schedulers, improved by local search; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "list",
        "partitioner.methods.list_scheduling.heft:solve_composed",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "a list scheduler of your own parts; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "dfs-topo",
        "partitioner.methods.list_scheduling.celeritas.placers:solve_dfs_topo",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "Celeritas: depth first, one device after another; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "cpd-topo",
        "partitioner.methods.list_scheduling.celeritas.placers:solve_cpd_topo",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "Celeritas: depth first along the longest path, one device after another; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "order-place",
        "partitioner.methods.list_scheduling.celeritas.placers:solve_order_place",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "Celeritas: fused clusters, one device after another; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "celeritas",
        "partitioner.methods.list_scheduling.celeritas.placers:solve_celeritas",
        PLACED,
        ("free", "convex"),
        ("numba",),
        "Celeritas: fused clusters by Adjusting Placement; with a lower bound",
        OPERATORS,
    ),
    MethodInfo(
        "scotch",
        "partitioner.methods.graph_partitioning.scotch:solve_scotch",
        PARTITIONED,
        ("free",),
        ("scotch",),
        "the paper's baseline: parts of equal work by the program Scotch, without regard to memory; "
        "with a lower bound",
        ("operators",),
    ),
    MethodInfo(
        "metis",
        "partitioner.methods.graph_partitioning.metis:solve_metis",
        PARTITIONED,
        ("free",),
        ("pymetis",),
        "baseline: parts of equal work by METIS, without regard to memory; with a lower bound",
        ("operators",),
    ),
    MethodInfo(
        "latency_ip",
        "partitioner.methods.latency.solve:solve_latency",
        ("latency",),
        ("convex",),
        ("gurobi", "scip", "highs", "cpsat", "cbc"),
        "optimal within the gap, or the best plan and bound at the time limit",
    ),
    MethodInfo(
        "latency_search",
        "partitioner.methods.latency.search_method:solve_latency_search",
        ("latency",),
        ("convex",),
        ("numba",),
        "annealing on the exact time of a sample, with a lower bound",
    ),
    MethodInfo(
        "latency_dp",
        "partitioner.methods.latency.sequence.method:solve_sequence",
        ("latency",),
        ("convex",),
        ("numba",),
        "least sum of blocks, then blocks that overlap; optimal where the graph is a path",
    ),
    MethodInfo(
        "greedy",
        "partitioner.methods.latency.greedy:solve_greedy",
        ("latency",),
        ("convex",),
        ("numpy",),
        "the paper's baseline: one accelerator after another, with a lower bound",
    ),
    MethodInfo(
        "max_load",
        "partitioner.methods.latency.max_load:solve_max_load",
        ("latency",),
        ("convex",),
        ("numba",),
        "the paper's baseline: the best chain for throughput, with a lower bound",
    ),
)
FEATURES = {
    "replicas": "replicas",
    "levels": "levels of devices",
    "schedule": "schedules",
    "limits": "limits on stages and pins to a device",
}
METHODS = {info.name: info for info in _METHODS}
EXACT = {
    "throughput": "ip",
    "gpipe": "ip",
    "latency": "latency_ip",
    "batch": "pipeline",
    "makespan": "portfolio",
}
FOR_CHAINS = {"throughput": "dp"}


def choose(
    method: str, objective: str, split: str, backend: str = "auto", features: Sequence[str] = ()
) -> MethodInfo:
    """The method of that name, or for ``"auto"`` the best one that can do what is asked.

    Raises
    ------
    OptionError
        If there is no such method, or it cannot do what is asked.
    BackendUnavailable
        If the method does not run on the backend.
    """
    name = _strongest(objective, split, features) if method == "auto" else method
    if not isinstance(name, str) or name not in METHODS:
        raise OptionError(f"method {method!r} is unknown; choose from auto, {', '.join(METHODS)}")
    info = METHODS[name]
    chosen = f"; auto takes it for {_reasons(objective, split, features)}" if method == "auto" else ""
    for wanted, offered, word in (
        (objective, info.objectives, "objective"),
        (split, info.splits_for(objective), "split"),
    ):
        if wanted not in offered:
            known = ", ".join(offered)
            where = f"{name} for {objective}" if word == "split" and offered != info.splits else name
            raise OptionError(f"{word} {wanted!r} is not available with method {where}, only {known}{chosen}")
    for feature in features:
        if feature not in info.features or (info.places_operators and objective != "makespan"):
            able = ", ".join(other.name for other in _METHODS if feature in other.features)
            raise OptionError(f"{FEATURES[feature]} mean nothing to method {name}, only to {able}{chosen}")
    if backend not in ("auto", *info.backends):
        known = ", ".join(info.backends)
        raise BackendUnavailable(f"method {name} does not run on {backend!r}, only on {known}")
    return info


def _strongest(objective: str, split: str, features: Sequence[str]) -> str:
    """The method with the strongest guarantee."""
    if _extended(objective, split, features):
        return "pipeline"
    exact = EXACT.get(objective, "ip")
    return FOR_CHAINS.get(objective, exact) if split == "chain" else exact


def _extended(objective: str, split: str, features: Sequence[str]) -> bool:
    return split == "chain" and bool(features) and objective != "makespan"


def _reasons(objective: str, split: str, features: Sequence[str]) -> str:
    """What decides which method is the strongest, in words."""
    if _extended(objective, split, features):
        return ", ".join(FEATURES[feature] for feature in features)
    return f"objective {objective!r} and split {split!r}"
