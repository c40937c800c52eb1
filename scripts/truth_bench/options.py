"""The options that the programs which run pipelines share, and the models that they run."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

from truth_bench.models import MODELS
from truth_bench.runs import MOST_TRIES, ProfiledModel, bandwidth_here, prepare, profiled


def parser(description: str) -> argparse.ArgumentParser:
    """Return a parser with the shared options; its description is the first line of the text."""
    found = argparse.ArgumentParser(description=description.splitlines()[0])
    found.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    found.add_argument("--rounds", type=int, default=3)
    found.add_argument("--seconds", type=float, default=5.0, help="of a profile")
    found.add_argument("--any-load", action="store_true", help="count runs beside other programs, too")
    found.add_argument("--cache", help="a folder for profiles")
    return found


def tries(options: argparse.Namespace) -> int:
    """Return how often a run is made, at most, while other programs are running."""
    return 1 if options.any_load else MOST_TRIES


def begin() -> float:
    """Set up this process for measurements, and return the bytes per second between two processes."""
    prepare()
    warnings.filterwarnings("ignore")
    return bandwidth_here()


def cases(options: argparse.Namespace, bandwidth: float) -> Iterator[tuple[str, ProfiledModel]]:
    """Yield the name and the profile of each model, for inference and for training."""
    for name in options.models:
        for training in (False, True):
            yield name, profiled(name, training, bandwidth, options.seconds, options.cache)
