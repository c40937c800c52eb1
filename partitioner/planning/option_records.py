"""All options of solve by name: Python's checks, the command line and the documentation read them here."""

from __future__ import annotations

from partitioner.base.argument_types import is_count
from partitioner.base.errors import one_of
from partitioner.evaluation.shape import SHAPES, is_contiguous
from partitioner.methods.method import Settings
from partitioner.methods.placing import GROUPERS, USUAL, Placer
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.planning.option import (
    LIMITS,
    PIPELINES,
    PLACING,
    SERVING,
    WANTED,
    Effect,
    Option,
    with_methods,
    with_term,
)
from partitioner.planning.option_rules import (
    LONGEST,
    SWITCH,
    TEXT,
    Rule,
    count,
    instance,
    name_among,
    name_in,
    number,
)
from partitioner.workload.constraints import NONE, Constraints
from partitioner.workload.device_validation import MAX_COUNT
from partitioner.workload.extras import MOST_ZERO
from partitioner.workload.input_operators import CHOICES as COPIES
from partitioner.workload.tied_weights import CHOICES
from partitioner.workload.training_states import OPTIMIZERS, RECOMPUTE
from partitioner.workload.transfers import Transfers
from partitioner.workload.virtual_stages.schedules import MOST_CHUNKS, PLANNED, VIRTUAL

# Options that say what to look for.

OF_TRAINING = "graphs for training whose memory is given by parts; elsewhere refused"

GRANULARITIES = ("operator", "layer")
CONVEX = Effect(
    "split 'convex'",
    lambda request: is_contiguous(request.split) and "subgraphs" not in request.objective.terms,
    refused=True,
)
WHAT = (
    Option(
        "objective",
        None,
        name_in(OBJECTIVES, f"one of {', '.join(OBJECTIVES.own)}, or a registered objective", optional=True),
        f"minimise this, or maximise it if it is capacity: {', '.join(OBJECTIVES.own)}",
        WANTED,
        meaning=f"makespan if a schedule and microbatches are given, else {DEFAULT}",
        metavar="NAME",
        keyword=True,
    ),
    Option(
        "method",
        "auto",
        name_in(METHODS, "auto, or a name that 'partitioner methods' lists", "auto"),
        "run this method; 'partitioner methods' lists them",
        WANTED,
        meaning="the strongest that applies",
        metavar="NAME",
        keyword=True,
    ),
    Option(
        "split",
        None,
        name_among(SHAPES, optional=True),
        "make a chain of stages, convex parts, or free parts",
        WANTED,
        meaning="chain for throughput, gpipe, batch and capacity, convex for latency, free for makespan",
        keyword=True,
    ),
    Option(
        "contiguous_backward",
        False,
        SWITCH,
        "for convex splits, require that backward parts are contiguous, too",
        WANTED,
        meaning="only forward parts must be",
        effect=CONVEX,
    ),
    Option(
        "contiguous_cpus",
        True,
        SWITCH,
        "for convex splits, require that parts on CPUs are contiguous",
        WANTED,
        meaning="they must be",
        effect=CONVEX,
        flag="--scattered-cpus",
        flag_help="for convex splits, allow parts on CPUs that are not contiguous",
    ),
    Option(
        "granularity",
        "operator",
        name_among(GRANULARITIES),
        "place operators on their own, or all operators of a layer together",
        WANTED,
    ),
)


# Options that say when a run stops, and what it may use.

MOST_ORDERS = 10**6
MOST_WORKERS = 1024
OVER_IDEALS = (
    *("dp", "dpl", "pipeline", "virtual_stages", "simulated", "pipedream_path"),
    *("ip", "max_load", "latency_ip", "latency_dp"),
)
STARTED = (
    *("dp", "dpl", "pipeline", "simulated", "ip", "local_search"),
    *("latency_ip", "latency_search", "portfolio", "exact"),
)
EFFECT = with_methods(*OVER_IDEALS)
WHEN = (
    Option(
        "time_limit",
        None,
        number(
            f"a positive number of seconds, at most {LONGEST:,}", lambda v: 0 < v <= LONGEST, optional=True
        ),
        "return the best plan found after this many seconds, in which compiling is not counted",
        LIMITS,
        meaning="no limit",
        metavar="SECONDS",
        keyword=True,
    ),
    Option(
        "gap",
        0.0,
        number("a fraction from 0 to less than 1", lambda v: 0 <= v < 1),
        "stop once the plan is proven within this fraction of the optimum",
        LIMITS,
        meaning="search until the plan is proven optimal",
        metavar="FRACTION",
        keyword=True,
    ),
    Option(
        "seed",
        0,
        Rule(
            "an integer of at least 0",
            lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0,
            int,
        ),
        "draw random numbers from this seed",
        LIMITS,
        keyword=True,
    ),
    Option(
        "workers",
        None,
        count(MOST_WORKERS, optional=True),
        "use at most this many cores",
        LIMITS,
        meaning="all",
        keyword=True,
    ),
    Option(
        "deterministic",
        False,
        SWITCH,
        "count work in steps instead of seconds, on one core, so that the same call gives the same plan",
        LIMITS,
        meaning="methods ip, latency_ip, portfolio and exact run searches by the clock",
    ),
    Option(
        "backend",
        "auto",
        TEXT,
        "solve integer programs with this solver; 'partitioner methods' lists them",
        LIMITS,
        meaning="the best ones installed",
        metavar="NAME",
        keyword=True,
    ),
    Option(
        "memory_budget",
        Settings.memory_budget,
        count(),
        "let the exact search take at most this many bytes",
        LIMITS,
        meaning="which is 4 GiB",
        effect=with_methods(*OVER_IDEALS, "exact"),
        metavar="BYTES",
    ),
    Option(
        "step_limit",
        Settings.step_limit,
        count(),
        "let the exact search take at most this many steps",
        LIMITS,
        meaning="which is some minutes",
        effect=EFFECT,
    ),
    Option(
        "orders",
        Settings.orders,
        count(MOST_ORDERS),
        "let method dpl try this many linear orders",
        LIMITS,
        effect=EFFECT,
    ),
    Option(
        "warm_start",
        None,
        Rule("a plan, a Solution, or a mapping of nodes to devices"),
        "start from this plan or placement, if it is feasible and of the shape asked for",
        LIMITS,
        meaning="no start is given",
        effect=with_methods(*STARTED),
        keyword=True,
    ),
)


# Options of pipelines, batches and single samples.

PIPELINED = (
    Option(
        "replicas",
        1,
        count(MAX_COUNT),
        "let a stage have up to this many copies, each on devices of its own: one, or as many as an "
        "alternative takes",
        PIPELINES,
        effect=Effect(
            "devices with several of a kind",
            lambda request: any(kind.count > 1 for kind in request.devices.kinds),
        ),
    ),
    Option(
        "schedule",
        None,
        name_among(PLANNED, f"None or {one_of(None, PLANNED)}", optional=True),
        f"let stages keep as many samples in memory as this schedule does: {', '.join(PLANNED)}",
        PIPELINES,
        metavar="NAME",
        meaning="none, each stage keeps one sample",
        where="chains of stages; elsewhere refused",
    ),
    Option(
        "virtual_stages",
        None,
        count(MOST_CHUNKS, optional=True),
        f"let each device have this many stages, for schedule {', '.join(VIRTUAL)}",
        PIPELINES,
        meaning="2, for zb_h1 1",
    ),
    Option(
        "microbatches",
        None,
        count(optional=True),
        "make a batch of this many samples; objectives batch and piper need this option, and so do schedule "
        "gpipe and those with several stages on a device",
        PIPELINES,
        meaning="none",
        effect=with_term("microbatches", "objective throughput, batch, piper, capacity or makespan"),
    ),
    Option(
        "recompute",
        "none",
        name_among(RECOMPUTE),
        "compute again in the backward pass nothing, or all but what each layer receives (full); of a config "
        "also the scores of attention (selective), norms and activation functions too (elementwise), these "
        "and every second product (alternate)",
        PIPELINES,
        where=OF_TRAINING,
        flag="--recompute-layers",
        of_file=True,
    ),
    Option(
        "zero",
        0,
        Rule(f"an integer from 0 to {MOST_ZERO}", lambda v: is_count(v, 0, MOST_ZERO), int),
        "divide among the `data_parallel` replicas of a device, and among the copies of its stage, the "
        "optimizer's state (1), gradients too (2), or among the former parameters too (3)",
        PIPELINES,
        where=OF_TRAINING,
        of_file=True,
    ),
    Option(
        "data_parallel",
        1,
        count(),
        "let each device stand for this number of replicas, which divide what `zero` says",
        PIPELINES,
        where=OF_TRAINING,
        of_file=True,
    ),
    Option(
        "optimizer",
        None,
        name_among(tuple(OPTIMIZERS), optional=True),
        "keep the state of this optimizer: 8 bytes a parameter (adam), 2 (adam_8bit), 4 (momentum), 0 (sgd); "
        "all but adam_8bit with 4 more for narrower parameters",
        PIPELINES,
        meaning="what the graph says",
        where=OF_TRAINING,
        metavar="NAME",
        of_file=True,
    ),
    Option(
        "tied",
        None,
        name_among(CHOICES, optional=True),
        "train copies of tied weights whose gradients are added up once a batch (copied), or keep all that "
        "reads them on one device (together), or what of both is faster (auto, for solve)",
        PIPELINES,
        meaning="as the graph says: the gradient goes one way, and one device holds the weights",
        where="graphs for training that say what their tied weights take; without such weights no effect",
        of_file=True,
    ),
    Option(
        "input_operators",
        None,
        name_among(COPIES, optional=True),
        "send the results of operators that depend on inputs alone, such as masks (sent), or let every stage "
        "that reads them compute them (copied), or what of both is faster (auto)",
        PIPELINES,
        meaning="sent",
        where="graphs with such operators, for objectives whose values are made of loads; for others refused",
    ),
    Option(
        "subgraphs_per_accelerator",
        1,
        count(),
        "for objective latency, let an accelerator hold this many subgraphs of each pass",
        PIPELINES,
        effect=with_term("subgraphs_per_accelerator", "objective latency"),
    ),
    Option(
        "constraints",
        NONE,
        instance(Constraints),
        "require what these constraints say of stages, nodes and devices",
        PIPELINES,
        meaning="no constraints",
        where="everywhere; limits on stages and pins to a device are refused for objective latency, for "
        "makespans of operators and with methods that do not know them, pins to a device with several stages "
        "on a device",
    ),
)


# Options of serving: how long a sample may take where the most samples in flight are looked for.

LIMITED = with_term("max_time_per_sample", "objective capacity")
SERVED = (
    Option(
        "max_time_per_sample",
        None,
        number(f"a positive number, at most {LONGEST:,}", lambda v: 0 < v <= LONGEST, optional=True),
        "let no device take longer than this for a sample, in the unit of the workload's times",
        SERVING,
        meaning="no limit",
        effect=LIMITED,
        metavar="TIME",
    ),
    Option(
        "max_slowdown",
        None,
        number(f"a number from 1 to {LONGEST:,}", lambda v: 1 <= v <= LONGEST, optional=True),
        "let no device take longer for a sample than this multiple of the least time that a plan with one "
        "sample in flight can have; 1: the most samples at the least time",
        SERVING,
        meaning="no limit",
        effect=LIMITED,
        metavar="X",
    ),
)


# Options of the methods that place operators one by one.

PLACERS = tuple(info.name for info in METHODS.own.values() if info.places_operators)
PARTITIONERS = ("scotch", "metis")
LISTED = tuple(name for name in PLACERS if name not in PARTITIONERS)
AROUND = ("portfolio", "exact")  # they run the other placers
BAECHI = ("m-topo", "m-etf", "m-sct", *AROUND)
FUSED = with_methods("celeritas", "order-place", *AROUND)
POSITIVE = number(f"a positive number, at most {LONGEST:,}", lambda v: 0 < v <= LONGEST)
PLACED = (
    Option(
        "refine",
        USUAL.refine,
        SWITCH,
        "improve the placement by local search",
        PLACING,
        meaning="the placement stays as the method makes it; portfolio and exact improve theirs",
        effect=with_methods(*LISTED, refused=True),
    ),
    Option(
        "reserve_memory",
        USUAL.reserve_memory,
        SWITCH,
        "let the first node of a colour class reserve memory for all nodes of the class",
        PLACING,
        meaning="the first node of a colour class reserves memory for all of them",
        effect=with_methods(*(name for name in LISTED if name != "m-topo")),
        flag_help="let every node of a colour class take its own memory when it is placed",
    ),
    Option(
        "uniform",
        USUAL.uniform,
        SWITCH,
        "let m-TOPO fill no device beyond an even share and the largest colour class",
        PLACING,
        meaning="no device is filled beyond an even share and the largest colour class",
        effect=with_methods("m-topo"),
        flag_help="let m-TOPO fill devices up to their memory",
    ),
    Option(
        "sct_threshold",
        USUAL.sct_threshold,
        number("a number from 0 to 1", lambda v: 0 <= v <= 1),
        "let m-SCT take edges whose value in the linear program is at most this, 0 to 1, as edges to "
        "favourite children",
        PLACING,
        effect=with_methods("m-sct", *AROUND),
        metavar="X",
    ),
    Option(
        "grouper",
        USUAL.grouper,
        name_among(GROUPERS),
        "for Baechi's methods, keep a node with its only successor (coplace), or do not (none)",
        PLACING,
        effect=with_methods(*BAECHI, refused=True),
    ),
    Option(
        "fuse",
        USUAL.fuse,
        SWITCH,
        "for Baechi's methods, contract the edges inside groups",
        PLACING,
        meaning="they stay",
        effect=with_methods(*BAECHI, refused=True),
    ),
    Option(
        "fusion_range",
        USUAL.fusion_range,
        count(),
        "let a cluster of Celeritas have at most this many nodes",
        PLACING,
        effect=FUSED,
    ),
    Option(
        "fusion_memory",
        USUAL.fusion_memory,
        POSITIVE,
        "let a cluster of Celeritas take at most this fraction of the smallest device's memory",
        PLACING,
        effect=FUSED,
        metavar="FRACTION",
    ),
    Option(
        "imbalance",
        USUAL.imbalance,
        POSITIVE,
        "let the largest part of scotch and metis exceed the mean by this fraction",
        PLACING,
        effect=with_methods(*PARTITIONERS, *AROUND),
        metavar="FRACTION",
    ),
    Option(
        "transfers",
        USUAL.transfers,
        instance(Transfers),
        "let tensors travel from device to device as these transfers say",
        PLACING,
        meaning="a transfer takes what the dearer of its two devices pays, and none delays another",
        effect=with_methods(*PLACERS),
    ),
    Option(
        "placer",
        USUAL.placer,
        instance(Placer),
        "make method list of these parts",
        PLACING,
        meaning="the parts of HEFT",
        effect=with_methods("list", refused=True),
    ),
)


OPTIONS: dict[str, Option] = {
    option.name: option for records in (WHAT, WHEN, PIPELINED, SERVED, PLACED) for option in records
}
