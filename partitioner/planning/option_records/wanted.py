"""Options that say what to look for."""

from __future__ import annotations

from partitioner.evaluation.shape import SHAPES, is_contiguous
from partitioner.methods.registry import METHODS
from partitioner.planning.objectives import DEFAULT, OBJECTIVES
from partitioner.planning.option import WANTED, Effect, Option
from partitioner.planning.option_rules import SWITCH, name_among, name_in

GRANULARITIES = ("operator", "layer")
CONVEX = Effect(
    "split 'convex'",
    lambda request: is_contiguous(request.split) and "subgraphs" not in request.objective.terms,
    refused=True,
)
RECORDS = (
    Option(
        "objective",
        DEFAULT,
        name_in(OBJECTIVES, f"one of {', '.join(OBJECTIVES.own)}, or a registered objective"),
        f"minimise this, or maximise it if it is capacity: {', '.join(OBJECTIVES.own)}",
        WANTED,
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
