"""The record of every method: where it is, what it can be called with, what it guarantees."""

from __future__ import annotations

from partitioner.methods.info import MethodInfo

USERS_OWN = "list"  # a list scheduler made of rules that the user gives
PARTITIONED = ("throughput", "gpipe", "makespan")
PLACED = ("makespan", "throughput", "gpipe", "latency")
PLANNERS = (
    MethodInfo(
        "dp",
        "partitioner.methods.dp.exact:solve_exact",
        ("throughput",),
        ("chain",),
        ("numba",),
        "optimal if the ideals fit in memory, else as dpl; many kinds of devices are searched level by level",
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
        "the best chain over many linear orders, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "pipeline",
        "partitioner.methods.dp.pipeline.solve:solve_pipeline",
        ("throughput", "batch"),
        ("chain",),
        ("numba",),
        "as dp, with replicas, levels, schedules and limits on stages",
        ("replicas", "levels", "schedule", "limits"),
    ),
    MethodInfo(
        "simulated",
        "partitioner.methods.dp.pipeline.solve:solve_pipeline",
        ("makespan",),
        ("chain",),
        ("numba",),
        "plans of pipeline, simulated; the best one improved by moving stage boundaries; with a lower bound",
        ("replicas", "levels", "schedule", "limits"),
    ),
    MethodInfo(
        "local_search",
        "partitioner.methods.local_search.method:solve_local_search",
        ("throughput", "gpipe"),
        ("convex", "free"),
        ("numba",),
        "simulated annealing with a lower bound; moves nodes, nets and clusters",
        may_miss=True,
    ),
    MethodInfo(
        "local_search_baseline",
        "partitioner.methods.baselines.local_search:solve_baseline",
        ("throughput", "gpipe"),
        ("free",),
        ("numba",),
        "baseline: best single moves from ten random starts, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "pipedream_path",
        "partitioner.methods.baselines.path:solve_path",
        ("throughput",),
        ("chain",),
        ("numba",),
        "baseline: the best chain that cuts no branching, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "pipedream",
        "partitioner.methods.baselines.pipedream.solve:solve_pipedream",
        ("throughput",),
        ("chain",),
        ("numba",),
        "PipeDream's released planner, on one kind of device; with a lower bound",
        ("replicas", "levels"),
        may_miss=True,
    ),
    MethodInfo(
        "single_device",
        "partitioner.methods.baselines.single_device:solve_single",
        ("throughput", "gpipe"),
        ("chain", "convex", "free"),
        ("numpy",),
        "baseline: everything on one device, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "scotch",
        "partitioner.methods.baselines.graph_partitioning.scotch:solve_scotch",
        PARTITIONED,
        ("free",),
        ("scotch",),
        "baseline: parts of equal work by the program Scotch, which ignores memory; with a lower bound",
        ("operators",),
        may_miss=True,
    ),
    MethodInfo(
        "metis",
        "partitioner.methods.baselines.graph_partitioning.metis:solve_metis",
        PARTITIONED,
        ("free",),
        ("pymetis",),
        "baseline: parts of equal work by METIS, which ignores memory; with a lower bound",
        ("operators",),
        may_miss=True,
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
        "simulated annealing on the exact latency, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "latency_dp",
        "partitioner.methods.latency.sequence.method:solve_sequence",
        ("latency",),
        ("convex",),
        ("numba",),
        "optimal if the graph is a path; else the best sequence of blocks, then a beam search",
        may_miss=True,
    ),
    MethodInfo(
        "greedy",
        "partitioner.methods.latency.greedy:solve_greedy",
        ("latency",),
        ("convex",),
        ("numpy",),
        "baseline: fills one accelerator after another, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "max_load",
        "partitioner.methods.latency.max_load:solve_max_load",
        ("latency",),
        ("convex",),
        ("numba",),
        "baseline: the best chain for throughput, with a lower bound",
        may_miss=True,
    ),
)


def _placer(name: str, place: str, guarantee: str) -> MethodInfo:
    """Return the record of a list scheduler."""
    return MethodInfo(
        name,
        f"partitioner.methods.list_scheduling.{place}",
        PLACED,
        ("free", "convex"),
        ("numba",),
        guarantee,
        ("operators", "levels"),
        features_for=("makespan",),
        splits_of={**dict.fromkeys(PLACED, ("free",)), "latency": ("convex",)},
        may_miss=True,
    )


PLACERS = (
    _placer(
        "portfolio",
        "portfolio:solve_portfolio",
        "the best of all quick list schedulers, improved by local search",
    ),
    _placer("heft", "heft:solve_heft", "HEFT: by upward rank, each where it ends first"),
    _placer("etf", "baechi.etf:solve_etf", "ETF: next is the operator that can start first"),
    _placer("m-topo", "baechi.m_topo:solve_m_topo", "Baechi's m-TOPO: fills one device after another"),
    _placer("m-etf", "baechi.m_etf:solve_m_etf", "Baechi's m-ETF: idle devices run what can start first"),
    _placer("m-sct", "baechi.m_sct:solve_m_sct", "Baechi's m-SCT: waits for favourite children"),
    _placer(
        "dpos",
        "fastt.dpos:solve_dpos",
        "FastT's DPOS: critical path on one device, the rest where it ends first",
    ),
    _placer(
        "dfs-topo",
        "celeritas.placers:solve_dfs_topo",
        "Celeritas: depth first, fills one device after another",
    ),
    _placer(
        "cpd-topo",
        "celeritas.placers:solve_cpd_topo",
        "Celeritas: along the longest path, fills one device after another",
    ),
    _placer(
        "order-place",
        "celeritas.placers:solve_order_place",
        "Celeritas: fused clusters, fills one device after another",
    ),
    _placer(
        "celeritas",
        "celeritas.placers:solve_celeritas",
        "Celeritas: fused clusters by Adjusting Placement",
    ),
    _placer(USERS_OWN, "heft:solve_composed", "a list scheduler made of your own rules"),
)
