"""Options that say when a run stops, and what it may use."""

from __future__ import annotations

from partitioner.methods.method import Settings
from partitioner.planning.option import LIMITS, Option, with_methods
from partitioner.planning.option_rules import LONGEST, SWITCH, TEXT, Rule, count, number

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
RECORDS = (
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
