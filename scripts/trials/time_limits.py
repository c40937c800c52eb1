"""Random calls with limits of 0.05 to 3 seconds: warm in one process, in fresh ones, with nothing compiled.

A call must end in a plan that keeps the rules, a proof that there is none, or an error that is true, within
its limit, one second, and what its notes say of compiling. Whatever takes longer is asked three times more
and the least counts; processor seconds are reported too. Case number i has seed S + i. Exit code: 0, or 1 if
something is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import numpy as np

from trials.campaign import Campaign, Trial, campaign_parser
from trials.limit_calls import GRACE, call_of
from trials.limit_graphs import MOST
from trials.worker import Lost, Worker

MODES = {"warm": 0.85, "fresh": 0.12, "cold": 0.03}
AGAIN = 3
CALL = "trials.limit_answers:answer"
LOST = {"outcome": "lost", "processor": 0.0, "compiling": 0.0, "speed": 0.0}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 1000)
    parser.add_argument("--mode", choices=MODES, help="this one only (a mixture)")
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help="nodes of a graph (%(default)s)")
    options = parser.parse_args(arguments)
    return Campaign(options.cases).run(trials(options.seed, options.cases, options.mode, options.most))


def trials(first: int, count: int, mode: str | None, most: int) -> Iterator[Trial]:
    """One trial a seed."""
    pool = Pool(most)
    try:
        for seed in range(first, first + count):
            yield trial(pool, seed, mode or _mode(seed), most)
    finally:
        pool.close()


class Pool:
    """The worker that stays warm, and others for one call each."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._warm = Worker(CALL)

    def ask(self, seed: int, mode: str) -> dict[str, Any]:
        """The record of a call."""
        worker = self._warm if mode == "warm" else Worker(CALL, cold=mode == "cold")
        try:
            if mode == "warm" and worker.fresh:
                worker.ask(None, self.most)
            return dict(worker.ask(seed, self.most))
        except Lost as error:
            return LOST | {"untrue": str(error), "wall": worker.patience}
        finally:
            if mode != "warm":
                worker.close()

    def close(self) -> None:
        """End the warm worker."""
        self._warm.close()


def trial(pool: Pool, seed: int, mode: str, most: int) -> Trial:
    """One call, asked again if it takes too long."""
    call = call_of(seed, most)
    record = pool.ask(seed, mode)
    room = GRACE + call.limit
    for _ in range(AGAIN if late(record, room) and record["outcome"] != "lost" else 0):
        record = min(record, pool.ask(seed, mode), key=lambda one: float(one["wall"] - one["compiling"]))
    wrong = [record["untrue"]] if record["untrue"] else []
    if late(record, room):
        wrong.append(f"{record['wall']:.2f} s with a limit of {call.limit:g} s, {_figures(record)}")
    command = f"python scripts/trials/time_limits.py --mode {mode} --most {most} --cases 1 --seed {seed}"
    paste = f"# {call.title}\n{command}"
    seconds = record["wall"], record["processor"]
    return Trial(f"{mode}, {call.objective}", str(record["outcome"]), "; ".join(wrong), paste, seconds)


def late(record: dict[str, Any], room: float) -> bool:
    """Whether a call took longer than it may."""
    return bool(record["wall"] - record["compiling"] > room)


def _figures(record: dict[str, Any]) -> str:
    """What the machine and the program did meanwhile."""
    used, compiling = f"{record['processor']:.2f} s of the processor", record["compiling"]
    return f"{used}, told of compiling {compiling:.2f} s, the machine gave {record['speed']:.0%} of a core"


def _mode(seed: int) -> str:
    return str(np.random.default_rng([seed, 1]).choice(list(MODES), p=list(MODES.values())))


if __name__ == "__main__":
    sys.exit(main())
