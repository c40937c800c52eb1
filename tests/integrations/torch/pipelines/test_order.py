"""Runs hold every operator once, after all that it waits for; a chain has one run for each device."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from partitioner.integrations.torch.pipelines.order import DeviceRun, device_runs


def random_graph(draw: random.Random, count: int) -> tuple[list[str], dict[str, set[str]]]:
    """Names in an order of a random acyclic graph, and what each waits for."""
    names = [f"op{i}" for i in range(count)]
    before = {
        name: {names[j] for j in range(i) if draw.random() < 2.0 / count} for i, name in enumerate(names)
    }
    return names, before


def check(runs: list[DeviceRun], names: list[str], before: dict[str, set[str]], home: dict[str, str]) -> None:
    done: set[str] = set()
    for run in runs:
        for name in run.operators:
            assert home[name] == run.device
            assert before[name] <= done
            assert name not in done
            done.add(name)
    assert done == set(names)
    assert all(one.device != other.device for one, other in pairwise(runs))


@pytest.mark.parametrize("seed", range(200))
def test_random_placements(seed: int) -> None:
    draw = random.Random(seed)
    names, before = random_graph(draw, draw.randint(1, 30))
    home = {name: draw.choice("abc") for name in names}
    check(device_runs(names, before, home), names, before, home)


@pytest.mark.parametrize("seed", range(100))
def test_no_device_has_two_runs_if_nothing_comes_back_to_it(seed: int) -> None:
    """The devices are levels of the graph, whose operators stand in any order of the program."""
    draw = random.Random(seed)
    names, before = random_graph(draw, draw.randint(4, 30))
    home: dict[str, str] = {}
    for name in names:
        least = max((int(home[one]) for one in before[name]), default=0)
        home[name] = str(draw.randint(least, 3))
    runs = device_runs(names, before, home)
    check(runs, names, before, home)
    assert len(runs) == len(set(home.values()))
