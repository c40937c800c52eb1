"""Random small cases of every objective and extension, held against oracles.

Case number i has seed S + i, so `--cases 1 --seed I` shows case I again. A value must be the oracle's within
1e-9 where it is proven and no less where it is not; a bound must not exceed it; "infeasible" must be true. A
wrong answer is reduced to a small graph and printed as Python. Exit code: 0, or 1 if something is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import numpy as np

from partitioner.methods.ip import solve as ip
from partitioner.methods.ip.crew import Crew
from tests.methods.inline_crew import InlineCrew
from trials.campaign import Campaign, Trial, campaign_parser
from trials.question import tried
from trials.questions import chains, latencies, limits, pipelines, splits
from trials.times import makespans, simulations

FAMILIES = {
    "chains": (chains, 30),
    "splits": (splits, 20),
    "limits": (limits, 5),
    "pipelines": (pipelines, 25),
    "latencies": (latencies, 8),
    "makespans": (makespans, 7),
    "simulations": (simulations, 5),
}
IN_PROCESSES = 0.03  # the share of cases whose integer programs run in worker processes, as users' do


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 10_000)
    parser.add_argument("--only", choices=FAMILIES, help="cases of one sort (all sorts, in fixed shares)")
    options = parser.parse_args(arguments)
    return Campaign(options.cases).run(trials(options.seed, options.cases, options.only))


def trials(first: int, count: int, only: str | None = None) -> Iterator[Trial]:
    """One trial a seed."""
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        name = _sort(rng) if only is None else only
        crew = Crew if rng.random() < IN_PROCESSES else InlineCrew
        with patch.object(ip, "Crew", crew):
            yield trial(name, rng, seed)


def trial(name: str, rng: np.random.Generator, seed: int) -> Trial:
    """A case of one sort."""
    command = f"# python scripts/trials/oracles.py --only {name} --cases 1 --seed {seed}"
    if name == "simulations":
        return simulations(rng, command)
    try:
        return tried(FAMILIES[name][0](rng), command)  # type: ignore[operator]
    except AssertionError as error:
        return Trial(name, "oracles", str(error), command)


def _sort(rng: np.random.Generator) -> str:
    shares = np.array([share for _, share in FAMILIES.values()], dtype=float)
    return str(rng.choice(list(FAMILIES), p=shares / shares.sum()))


if __name__ == "__main__":
    sys.exit(main())
