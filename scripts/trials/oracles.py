"""Random small cases of every objective and extension, held against oracles.

Case number i has seed S + i, so `--cases 1 --seed I` shows case I again. A value must be the oracle's within
1e-9 where it is proven and no less where it is not; a bound must not exceed it; "infeasible" must be true. A
wrong answer is reduced to a small graph and printed as Python. Exit code: 0, or 1 if something is wrong.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import numpy as np

from partitioner.methods.ip import solve as ip
from partitioner.methods.solvers.worker_pool import WorkerPool
from tests.methods.inline_worker_pool import InlineWorkerPool
from trials.campaign import Campaign, Trial, campaign_parser
from trials.question import tried
from trials.questions import alternatives, chains, groups, latencies, limits, pipelines, splits
from trials.times import makespans, simulations
from trials.worker import Lost, Worker

FAMILIES = {
    "chains": (chains, 30),
    "splits": (splits, 20),
    "limits": (limits, 5),
    "pipelines": (pipelines, 25),
    "groups": (groups, 10),
    "latencies": (latencies, 8),
    "makespans": (makespans, 7),
    "simulations": (simulations, 5),
    "alternatives": (alternatives, 0),  # only where they are asked for
}
PATIENCE = 300.0  # seconds for a case
IN_PROCESSES = 0.03  # the share of cases whose integer programs run in worker processes, as users' do


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 10_000)
    parser.add_argument("--only", choices=FAMILIES, help="cases of one sort (all sorts, in fixed shares)")
    options = parser.parse_args(arguments)
    return Campaign(options.cases).run(trials(options.seed, options.cases, options.only))


def trials(first: int, count: int, only: str | None = None) -> Iterator[Trial]:
    """One trial a seed, in a process of its own, so that one that never ends is one trial."""
    worker = Worker("trials.oracles:answer", PATIENCE)
    try:
        for seed in range(first, first + count):
            name = _sort(seed) if only is None else only
            try:
                yield Trial(*worker.ask(name, seed))
            except Lost as error:
                yield Trial(name, "lost", str(error), command_of(name, seed))
    finally:
        worker.close()


def answer(name: str, seed: int) -> tuple[str, str, str, str, tuple[float, float]]:
    """The fields of a trial, for :mod:`trials.worker`."""
    clocks = time.perf_counter(), time.process_time()
    rng = np.random.default_rng(seed)
    pool = WorkerPool if rng.random() < IN_PROCESSES else InlineWorkerPool
    with patch.object(ip, "WorkerPool", pool):
        found = trial(name, rng, command_of(name, seed))
    seconds = time.perf_counter() - clocks[0], time.process_time() - clocks[1]
    return found.row, found.outcome, found.wrong, found.paste, seconds


def trial(name: str, rng: np.random.Generator, command: str) -> Trial:
    """A case of one sort."""
    if name == "simulations":
        return simulations(rng, command)
    try:
        return tried(FAMILIES[name][0](rng), command)  # type: ignore[operator]
    except AssertionError as error:
        return Trial(name, "oracles", str(error), command)


def command_of(name: str, seed: int) -> str:
    """What shows a case again."""
    return f"# python scripts/trials/oracles.py --only {name} --cases 1 --seed {seed}"


def _sort(seed: int) -> str:
    shares = np.array([share for _, share in FAMILIES.values()], dtype=float)
    rng = np.random.default_rng([seed, 1])
    return str(rng.choice(list(FAMILIES), p=shares / shares.sum()))


if __name__ == "__main__":
    sys.exit(main())
