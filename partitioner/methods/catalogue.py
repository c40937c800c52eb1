"""Every method: where it is, what it can be asked for, what it guarantees."""

from __future__ import annotations

from partitioner.methods.info import MethodInfo

USERS_OWN = "list"  # made of parts that the user gives
PARTITIONED = ("throughput", "gpipe", "makespan")
PLACED = ("makespan", "throughput", "gpipe", "latency")
PLANNERS = (
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
        may_miss=True,
    ),
    MethodInfo(
        "pipeline",
        "partitioner.methods.dp.pipeline.solve:solve_pipeline",
        ("throughput", "batch"),
        ("chain",),
        ("numba",),
        "as dp, with replicas, levels of links, memory by stage and limits on stages",
        ("replicas", "levels", "schedule", "limits"),
    ),
    MethodInfo(
        "simulated",
        "partitioner.methods.dp.pipeline.solve:solve_pipeline",
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
        may_miss=True,
    ),
    MethodInfo(
        "local_search_baseline",
        "partitioner.methods.baselines.local_search:solve_baseline",
        ("throughput", "gpipe"),
        ("free",),
        ("numba",),
        "the paper's baseline: best single moves from ten random starts, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "pipedream_path",
        "partitioner.methods.baselines.path:solve_path",
        ("throughput",),
        ("chain",),
        ("numba",),
        "the paper's baseline: best chain that keeps branchings whole, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "pipedream",
        "partitioner.methods.baselines.pipedream.solve:solve_pipedream",
        ("throughput",),
        ("chain",),
        ("numba",),
        "PipeDream's planner: best for the time it predicts, on one kind of device; with a lower bound",
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
        "the paper's baseline: parts of equal work by the program Scotch, without regard to memory; "
        "with a lower bound",
        ("operators",),
        may_miss=True,
    ),
    MethodInfo(
        "metis",
        "partitioner.methods.baselines.graph_partitioning.metis:solve_metis",
        PARTITIONED,
        ("free",),
        ("pymetis",),
        "baseline: parts of equal work by METIS, without regard to memory; with a lower bound",
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
        "annealing on the exact time of a sample, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "latency_dp",
        "partitioner.methods.latency.sequence.method:solve_sequence",
        ("latency",),
        ("convex",),
        ("numba",),
        "least sum of blocks, then blocks that overlap; optimal where the graph is a path",
        may_miss=True,
    ),
    MethodInfo(
        "greedy",
        "partitioner.methods.latency.greedy:solve_greedy",
        ("latency",),
        ("convex",),
        ("numpy",),
        "the paper's baseline: one accelerator after another, with a lower bound",
        may_miss=True,
    ),
    MethodInfo(
        "max_load",
        "partitioner.methods.latency.max_load:solve_max_load",
        ("latency",),
        ("convex",),
        ("numba",),
        "the paper's baseline: the best chain for throughput, with a lower bound",
        may_miss=True,
    ),
)


def _placer(name: str, place: str, guarantee: str) -> MethodInfo:
    """A list scheduler."""
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
    _placer("heft", "heft:solve_heft", "HEFT: by upward rank, each operator where it ends first"),
    _placer("etf", "baechi.etf:solve_etf", "ETF: of all ready operators and devices the earliest start"),
    _placer("m-topo", "baechi.m_topo:solve_m_topo", "Baechi's m-TOPO: one device after another, filled"),
    _placer(
        "m-etf", "baechi.m_etf:solve_m_etf", "Baechi's m-ETF: idle devices run what they could start first"
    ),
    _placer(
        "m-sct", "baechi.m_sct:solve_m_sct", "Baechi's m-SCT: as m-etf, devices wait for favourite children"
    ),
    _placer(
        "dpos",
        "fastt.dpos:solve_dpos",
        "FastT's DPOS: the critical path on one device, all else where it ends first",
    ),
    _placer(
        "dfs-topo", "celeritas.placers:solve_dfs_topo", "Celeritas: depth first, one device after another"
    ),
    _placer(
        "cpd-topo",
        "celeritas.placers:solve_cpd_topo",
        "Celeritas: depth first along the longest path, one device after another",
    ),
    _placer(
        "order-place",
        "celeritas.placers:solve_order_place",
        "Celeritas: fused clusters, one device after another",
    ),
    _placer(
        "celeritas", "celeritas.placers:solve_celeritas", "Celeritas: fused clusters by Adjusting Placement"
    ),
    _placer(USERS_OWN, "heft:solve_composed", "a list scheduler of your own parts"),
)
