"""Many solves in a row with the garbage collector off, in threads, in pools and inside asyncio.

In a row: after the first round of all objectives nothing may grow, neither open descriptors nor child
processes nor threads. Elsewhere: the answers of deterministic methods are those of a single thread. `--cases`
is the number of solves in each place. Exit code: 0, or 1 if something is wrong.
"""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

from trials.campaign import Campaign, Trial, campaign_parser
from trials.endurance_jobs import JOBS, held, run
from trials.worker import Lost, Worker

THREADS, PROCESSES = 8, 2
PATIENCE = 1800.0  # seconds for all solves in one place
Place = Callable[[Sequence[int]], Iterator[tuple[int, Any]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = campaign_parser(__doc__, 100)
    parser.add_argument("--only", choices=PLACES, help="this place only (all, one after another)")
    options = parser.parse_args(arguments)
    places = PLACES if options.only is None else {options.only: PLACES[options.only]}
    numbers = range(options.seed, options.seed + options.cases)
    campaign = Campaign(options.cases * len(places))
    return campaign.run(trial for name in places for trial in trials(name, numbers))


def trials(place: str, numbers: Sequence[int]) -> Iterator[Trial]:
    """Every solve in one place, and last what it has left behind."""
    command = f"python scripts/trials/endurance.py --only {place} --cases {len(numbers)} --seed {numbers[0]}"
    worker = Worker("trials.endurance:answer", PATIENCE)
    try:
        for outcome, wrong in worker.ask(place, numbers[0], len(numbers)):
            yield Trial(place, outcome, wrong, command)
    except Lost as error:
        yield Trial(place, "lost", str(error), command)
    finally:
        worker.close()


def answer(place: str, first: int, count: int) -> list[tuple[str, str]]:
    """How every solve ended and what is wrong with it; for :mod:`trials.worker`."""
    known = [run(number) for number in range(len(JOBS))]
    resource_tracker.ensure_running()  # multiprocessing's own, which lasts as long as the process
    gc.collect()
    gc.disable()
    before, numbers = held(), range(first, first + count)
    found = [("solved", _wrong(number, answer, known)) for number, answer in PLACES[place](numbers)]
    grown = {name: f"{before[name]} to {now}" for name, now in held().items() if now > before[name]}
    lasting = {name: grown[name] for name in grown if place == "row" or name in LEFT}
    gc.enable()
    return [*found, ("counted", f"grown: {lasting}" if lasting else "")]


def _wrong(number: int, found: Any, known: Sequence[Any]) -> str:
    job, expected = JOBS[number % len(JOBS)], known[number % len(JOBS)]
    title = f"{job.objective} with {dict(job.options)}"
    if isinstance(found, Exception):
        return f"{title}: {found!r}"
    return "" if found == expected else f"{title}: {found} is not {expected}, what one thread finds"


LEFT = ("descriptors", "children", "zombies")  # executors keep threads of their own until they are collected


def in_a_row(numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """One after another in this thread."""
    for number in numbers:
        yield number, _caught(run, number)


def in_threads(numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """In eight threads."""
    with ThreadPoolExecutor(THREADS) as pool:
        yield from _from(pool, numbers)


def in_forks(numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """In processes that are forked from this one."""
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("fork")) as pool:
        yield from _from(pool, numbers)


def in_spawned(numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """In processes that begin from nothing."""
    with ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn")) as pool:
        yield from _from(pool, numbers)


def in_asyncio(numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """In the default executor of an event loop."""

    async def gathered() -> list[Any]:
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(None, _caught, run, number) for number in numbers))

    yield from zip(numbers, asyncio.run(gathered()), strict=True)


PLACES: dict[str, Place] = {
    "row": in_a_row,
    "threads": in_threads,
    "fork": in_forks,
    "spawn": in_spawned,
    "asyncio": in_asyncio,
}


def _from(pool: Executor, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """What each job gives, or the exception that it raises."""
    for number, future in [(number, pool.submit(run, number)) for number in numbers]:
        yield number, _caught(future.result, PATIENCE)


def _caught(call: Callable[[Any], Any], argument: Any) -> Any:
    try:
        return call(argument)
    except Exception as error:  # whatever escapes is what these trials look for
        return error


if __name__ == "__main__":
    sys.exit(main())
