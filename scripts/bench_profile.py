"""How well profiles of models of torch repeat, and how near the sum of the operators is to a real step.

Each model is profiled twice, in training and in inference, with one thread; between the two a real step of
it is timed by the same clock, the median of as many steps as a profile has rounds. `differ` is how far the
sums of the two profiles are apart, `off` how far the first sum is from the real step. Needs torch. Exit
code: 0; 1 with --check if a pair of profiles differs by more than 5 %.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from grids import markdown_grid

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the models of the tests

import torch
from torch import nn

from partitioner.integrations.torch import profile
from tests.integrations.torch.models import Cnn, Experts, Gpt, UNet

WIDE, ALLOWED = 512, 0.05
GOOD, APART = 0, 1
CLOCKS: dict[str, Callable[[], float]] = {"thread": time.thread_time, "elapsed": time.perf_counter}
HEADS = ("model", "pass", "rounds", "first ms", "second ms", "differ", "real step ms", "off")


def models() -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield the name, the model and the arguments of a call of five small models."""
    torch.manual_seed(0)
    layers = [nn.Sequential(nn.Linear(WIDE, WIDE), nn.ReLU()) for _ in range(6)]
    yield "perceptron", nn.Sequential(*layers), (torch.randn(64, WIDE),)
    yield "transformer", Gpt(4, 192, 1000), (torch.randint(0, 1000, (8, 16)),)
    yield "residual", Cnn(4, 32), (torch.randn(2, 3, 48, 48),)
    yield "U-Net", UNet(16), (torch.randn(2, 3, 48, 48),)
    yield "experts", Experts(256, 8), (torch.randn(4, 64, 256),)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", choices=CLOCKS, default="thread", help="the clock (default: thread)")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds a profile (default: 10)")
    parser.add_argument("--check", action="store_true", help="fail if two profiles differ by more than 5 %%")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    measured = [
        (name, training, *_measured(model, args, training, options.clock, options.time_limit))
        for name, model, args in models()
        for training in (True, False)
    ]
    print(markdown_grid(list(HEADS), [_row(*each) for each in measured]))
    apart = max(_apart(second, first) for *_, first, second, _ in measured)
    print(f"\nlargest difference of two profiles: {apart:.1%}")
    return APART if options.check and apart > ALLOWED else GOOD


def _measured(
    model: Any, args: tuple[Any, ...], training: bool, clock: str, time_limit: float
) -> tuple[int, float, float, float]:
    """Return the rounds and the sum of a profile, the sum of another one, and a real step, in ms."""
    given: dict[str, Any] = {"bandwidth": 1e9, "training": training, "clock": clock, "time_limit": time_limit}
    first = profile(model, args, **given).graph
    rounds = int(first.extras.top["rounds"])
    step = _real_step(model, args, training, CLOCKS[clock], rounds)
    second = profile(model, args, **given).graph
    return rounds, float(first.time.sum()), float(second.time.sum()), step


def _real_step(
    model: Any, args: tuple[Any, ...], training: bool, clock: Callable[[], float], rounds: int
) -> float:
    times = []
    for _ in range(rounds + 2):
        model.zero_grad(set_to_none=True)
        started = clock()
        with torch.set_grad_enabled(training):
            output = model(*args)
            if training:
                torch.autograd.backward(output, torch.ones_like(output))
        times.append((clock() - started) * 1e3)
    return statistics.median(times[2:])


def _row(name: str, training: bool, rounds: int, first: float, second: float, step: float) -> tuple[str, ...]:
    kind = "training" if training else "inference"
    sums = f"{first:.2f}", f"{second:.2f}", f"{_apart(second, first):.1%}"
    return name, kind, str(rounds), *sums, f"{step:.2f}", f"{first / step - 1:+.1%}"


def _apart(one: float, other: float) -> float:
    return abs(one / other - 1)


if __name__ == "__main__":
    sys.exit(main())
