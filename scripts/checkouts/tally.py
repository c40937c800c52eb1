"""What a comparison of two checkouts has found, and how it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from grids import markdown_grid

from checkouts.jobs import Job
from checkouts.runs import Run, differences

HEADS = ("job", "old s", "new s", "new / old")
Pair = tuple[float, float]  # seconds of the old and of the new checkout


@dataclass
class Tally:
    """What a comparison has found.

    Parameters
    ----------
    equal, refused
        How many jobs have equal answers, and for how many of these the answer is the same error.
    stopped, different
        The jobs that patience has ended, and those whose answers differ.
    times
        For every job that was measured, the medians of the seconds.
    """

    equal: int = 0
    refused: int = 0
    stopped: list[Job] = field(default_factory=list)
    different: list[Job] = field(default_factory=list)
    times: dict[Job, Pair] = field(default_factory=dict)

    def note(self, job: Job, old: Run, new: Run) -> list[str]:
        """Count a job, and return in words where its runs differ; nothing if patience has ended one."""
        if old.stopped or new.stopped:
            self.stopped.append(job)
            return []
        found = differences(old, new)
        if found:
            self.different.append(job)
        else:
            self.equal += 1
            self.refused += old.plan is None
        return found

    def time(self, job: Job, pairs: Sequence[Pair]) -> None:
        """Keep the medians of the seconds of a job's runs."""
        before, after = (median(each) for each in zip(*pairs, strict=True))
        self.times[job] = (before, after)

    def lines(self) -> Iterator[str]:
        """Yield the counts, what was not compared, and tables of times."""
        yield (
            f"{self.equal + len(self.different)} jobs compared: {self.equal} equal ({self.refused} of them "
            f"without a plan, for the same reason), {len(self.different)} different; "
            f"{len(self.stopped)} ended by patience and not compared"
        )
        if self.stopped:
            yield f"not compared on some workload: {'; '.join(sorted(set(map(_kind, self.stopped))))}"
        if self.times:
            yield f"\n{markdown_grid(HEADS, [_row(str(job), [pair]) for job, pair in self.times.items()])}"
            kinds = sorted({_kind(job) for job in self.times})
            sums = [
                _row(kind, [self.times[job] for job in self.times if _kind(job) == kind]) for kind in kinds
            ]
            yield f"\nSums over the workloads:\n\n{markdown_grid(HEADS, sums)}"


def _kind(job: Job) -> str:
    """What is asked for, whatever the workload."""
    return str(job).partition(" ")[2]


def _row(name: str, pairs: Sequence[Pair]) -> list[str]:
    before, after = (sum(each) for each in zip(*pairs, strict=True))
    return [name, f"{before:.3f}", f"{after:.3f}", f"{after / before:.2f}"]
