"""Search for small instances on which a method loses most, by annealing (PISA, Coleman et al. 2024).

An instance is changed at random; the change stays if the loss grows, or by chance if it shrinks a little. The
worst instance of each start is printed, and with `--save` written as a workload beside `questions.json`. Run
`partitioner warm-up` first: what is compiled within a limit of time is lost.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

sys.path.extend([str(Path(__file__).parents[1]), str(Path(__file__).parents[2])])

import numpy as np

import partitioner as pt
from partitioner.methods.ip import solve as ip
from tests.methods.inline_worker_pool import InlineWorkerPool
from trials.adversarial_changes import Instance, changed
from trials.adversarial_families import FAMILIES, Family, Verdict

WARMEST, COOLEST = 0.1, 0.002  # losses that a change may cost, at first and at last
LITTLE = 1e-6


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code, 1 if a bound was above a plan."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=FAMILIES, nargs="+", default=list(FAMILIES))
    parser.add_argument("--seconds", type=float, default=60.0, help="of each start (60)")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--save", type=Path, help="the folder to which the worst instances are written")
    options = parser.parse_args(arguments)
    sound = True
    with patch.object(ip, "WorkerPool", InlineWorkerPool):
        for name in options.only:
            for start in range(options.seed, options.seed + options.starts):
                worst, verdict, tried = annealed(FAMILIES[name], start, options.seconds)
                sound &= verdict.slack >= -LITTLE
                print(row(name, start, worst, verdict, tried), flush=True)
                if options.save and FAMILIES[name].score(verdict) > LITTLE:
                    write(options.save, f"{name}-{start}", name, worst, verdict)
    return int(not sound)


def row(name: str, start: int, worst: Instance, verdict: Verdict, tried: int) -> str:
    """Return a line on the worst instance of a start."""
    size = f"{len(worst.graph)} nodes, {len(worst.devices.names)} devices"
    found = f"{verdict.value:.6g} found, {verdict.best:.6g} known, bound {verdict.bound:.6g}"
    return f"{name} {start}: {size}, {found}: +{verdict.loss:.1%}, -{verdict.slack:.1%}; {tried} tried"


def annealed(family: Family, seed: int, seconds: float) -> tuple[Instance, Verdict, int]:
    """Return the worst instance found, the verdict on it, and how many were tried."""
    rng, begin = np.random.default_rng(seed), time.perf_counter()
    now = best = None
    tried = 0
    while (spent := (time.perf_counter() - begin) / seconds) < 1 or best is None:
        instance = family.first(rng) if now is None or now[2] <= 0 else changed(now[0], rng, family.room)
        verdict = None if instance is None else judged(family, instance)
        if instance is None or verdict is None:
            continue
        tried += 1
        score = family.score(verdict)
        heat = WARMEST * (COOLEST / WARMEST) ** min(spent, 1.0)
        if now is None or score >= now[2] or rng.random() < math.exp((score - now[2]) / heat):
            now = instance, verdict, score
        if best is None or verdict.slack < -LITTLE or (score > best[2] and best[1].slack >= -LITTLE):
            best = instance, verdict, score
    return best[0], best[1], tried


def judged(family: Family, instance: Instance) -> Verdict | None:
    """Return the verdict on an instance; None if it cannot be asked for."""
    try:
        return family.judge(instance)
    except (pt.OptionError, pt.WorkloadError):
        return None


def write(folder: Path, name: str, family: str, instance: Instance, verdict: Verdict) -> None:
    """Write an instance, and enter what is asked of it in the list of questions."""
    folder.mkdir(parents=True, exist_ok=True)
    pt.Workload(instance.graph, instance.devices).save(folder / f"{name}.json")
    path = folder / "questions.json"
    questions = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    questions[name] = {
        "family": family,
        "objective": instance.objective,
        "options": dict(instance.options),
        "best": verdict.best,
        "learnt": "",
    }
    path.write_text(json.dumps(questions, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
