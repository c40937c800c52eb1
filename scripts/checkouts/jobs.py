"""What two checkouts are both asked: every workload with every objective, method, split and setting."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

FEATURES = ("replicas", "schedule")  # each is also a setting of the methods that take account of it
PLAIN = "plain"
Triple = tuple[str, str, str]  # a method, an objective, a split
Able = Mapping[Triple, AbstractSet[str]]  # and what the method takes account of


@dataclass(frozen=True)
class Job:
    """One workload and what is asked for."""

    file: str
    objective: str
    method: str
    split: str
    setting: str = PLAIN

    def __str__(self) -> str:
        words = (Path(self.file).stem, self.objective, self.method, self.split, self.setting)
        return " ".join(word for word in words if word != PLAIN)


def shared(old: Able, new: Able) -> Able:
    """Return what both checkouts can be asked for; a method may take account of more in one of them.

    Examples
    --------
    >>> old = {("dp", "throughput", "chain"): {"levels"}, ("gone", "batch", "chain"): {"levels"}}
    >>> shared(old, {("dp", "throughput", "chain"): {"levels", "replicas"}})
    {('dp', 'throughput', 'chain'): {'levels'}}
    """
    return {triple: features & new[triple] for triple, features in old.items() if triple in new}


def jobs_of(
    able: Able,
    files: Sequence[Path],
    methods: Sequence[str] | None = None,
    objectives: Sequence[str] | None = None,
) -> list[Job]:
    """Return the jobs, workload by workload.

    Examples
    --------
    >>> able = {("dp", "throughput", "chain"): {"levels"}, ("pipeline", "batch", "chain"): {"replicas"}}
    >>> [str(job) for job in jobs_of(able, [Path("a.json")], objectives=["batch"])]
    ['a batch pipeline chain', 'a batch pipeline chain replicas']
    """
    chosen = [
        (objective, method, split, setting)
        for (method, objective, split), features in sorted(able.items())
        if (methods is None or method in methods) and (objectives is None or objective in objectives)
        for setting in (PLAIN, *(name for name in FEATURES if name in features))
    ]
    return [Job(str(file), *what) for file in files for what in chosen]


def drawn(jobs: Sequence[Job], count: int, seed: int) -> list[Job]:
    """Return `count` of the jobs, drawn without repetition, in their order; all of them if they are fewer.

    Examples
    --------
    >>> jobs = jobs_of({("dp", "throughput", "chain"): set()}, [Path(f"{name}.json") for name in "abc"])
    >>> len(drawn(jobs, 2, seed=0)), len(drawn(jobs, 5, seed=0))
    (2, 3)
    """
    places = random.Random(seed).sample(range(len(jobs)), min(count, len(jobs)))
    return [jobs[place] for place in sorted(places)]
