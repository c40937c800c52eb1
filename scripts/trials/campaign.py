"""What every campaign shares: its options, a line of progress, failures as they come, a table at the end."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from grids import text_grid

SOUND, WRONG = 0, 1


@dataclass(frozen=True)
class Trial:
    """The end of one case.

    Parameters
    ----------
    row
        The row of the table that counts it.
    outcome
        How it ended, e.g. ``"plan"``.
    wrong
        What is wrong; empty if nothing is.
    paste
        What a person runs to see it again.
    seconds
        Wall and processor seconds, if it was another process that took them.
    """

    row: str
    outcome: str
    wrong: str = ""
    paste: str = ""
    seconds: tuple[float, float] | None = None


@dataclass
class Campaign:
    """Trials, counted as they come.

    Parameters
    ----------
    total
        How many trials are planned.
    """

    total: int
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    processor: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wrong: int = 0

    def __post_init__(self) -> None:
        self._clocks = time.perf_counter(), time.process_time()

    def run(self, trials: Iterable[Trial]) -> int:
        """Count all trials, print those that are wrong and the table; return the exit code."""
        with suppress(KeyboardInterrupt):  # the table of what was tried until then
            for number, trial in enumerate(trials, 1):
                self._count(trial)
                _say(f"\r{number:,} of {self.total:,} trials, {self.wrong:,} wrong")
        _say("\n")
        print(self.table())
        return WRONG if self.wrong else SOUND

    def table(self) -> str:
        """A line a row: how many trials, how they ended, wall and processor seconds."""
        outcomes = sorted({name for counts in self.counts.values() for name in counts} - {"wrong"})
        heads = ["trials of", "number", *outcomes, "wrong", "wall s", "cpu s"]
        return text_grid(heads, [self._row(name, outcomes) for name in sorted(self.counts)])

    def _row(self, name: str, outcomes: list[str]) -> list[str]:
        counts = self.counts[name]
        cells = [sum(counts[outcome] for outcome in outcomes), *(counts[o] for o in (*outcomes, "wrong"))]
        times = [f"{self.seconds[name]:.1f}", f"{self.processor[name]:.1f}"]
        return [name, *(f"{cell:,}" for cell in cells), *times]

    def _count(self, trial: Trial) -> None:
        now = time.perf_counter(), time.process_time()
        self.counts[trial.row][trial.outcome] += 1
        spent = trial.seconds or (now[0] - self._clocks[0], now[1] - self._clocks[1])
        self.seconds[trial.row] += spent[0]
        self.processor[trial.row] += spent[1]
        self._clocks = now
        if trial.wrong:
            self.wrong += 1
            self.counts[trial.row]["wrong"] += 1
            _say("\n")
            print(f"WRONG, {trial.row}: {trial.wrong}\n{trial.paste}\n", flush=True)


def campaign_parser(description: str | None, cases: int) -> argparse.ArgumentParser:
    """A parser that knows the number of cases and the first seed."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=cases, metavar="N", help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the first case (%(default)s)")
    return parser


def _say(text: str) -> None:
    """Write progress, on a terminal only."""
    if sys.stderr.isatty():
        print(text, end="", file=sys.stderr, flush=True)
