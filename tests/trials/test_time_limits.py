"""Calls with time limits end in time, in a plan, a proof, or an error that is true."""

from __future__ import annotations

import numpy as np
import pytest
from trials.campaign import SOUND
from trials.limit_graphs import SHAPES, filled_chain, some_devices, some_graph
from trials.time_limits import main

import partitioner as pt


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "cases", "most"), [("warm", 40, 3000), ("fresh", 6, 300), ("cold", 1, 100)])
def test_calls_keep_their_limits(
    mode: str, cases: int, most: int, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--mode", mode, "--cases", str(cases), "--most", str(most), "--seed", "40000"]
    assert main(words) == SOUND, capsys.readouterr().out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 2, 17, 150])
def test_the_simple_chain_is_a_plan(shape: str, n: int) -> None:
    """What the trials say is known at once is a chain that keeps every rule."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        graph = some_graph(shape, n, rng)
        devices = some_devices(graph, "tight" if seed else "loose", rng)
        placement = filled_chain(graph, devices)
        assert seed or placement is not None
        if placement is not None:
            found = pt.evaluate(graph, devices, placement, split="chain")
            assert found.feasible and found.shape.name == "chain"
