"""Options of the methods that place operators one by one."""

from __future__ import annotations

from partitioner.methods.placing import GROUPERS, USUAL, Placer
from partitioner.methods.registry import METHODS
from partitioner.planning.option import PLACING, Option, with_methods
from partitioner.planning.option_rules import LONGEST, SWITCH, count, instance, name_among, number
from partitioner.workload.transfers import Transfers

PLACERS = tuple(info.name for info in METHODS.own.values() if info.places_operators)
PARTITIONERS = ("scotch", "metis")
LISTED = tuple(name for name in PLACERS if name not in PARTITIONERS)
AROUND = ("portfolio", "exact")  # they run the other placers
BAECHI = ("m-topo", "m-etf", "m-sct", *AROUND)
FUSED = with_methods("celeritas", "order-place", *AROUND)
POSITIVE = number(f"a positive number, at most {LONGEST:,}", lambda v: 0 < v <= LONGEST)
RECORDS = (
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
        effect=with_methods("m-topo", *AROUND),
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
