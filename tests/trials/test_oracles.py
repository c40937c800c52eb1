"""Random cases of every objective agree with the oracles; the oracles agree with one another."""

from __future__ import annotations

import numpy as np
import pytest
from trials.campaign import SOUND
from trials.oracles import FAMILIES, main

from tests.instances import SOLVABLE, Instance
from tests.oracle import best_values
from tests.oracle_paper import paper_values
from tests.random_workloads import random_workload

SHARE = {"chains": 120, "splits": 80, "limits": 60, "pipelines": 60, "latencies": 25, "makespans": 30}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_cases_agree_with_the_oracles(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    count = SHARE.get(family, 100)
    assert main(["--only", family, "--cases", str(count), "--seed", "40000"]) == SOUND, (
        capsys.readouterr().out
    )


@pytest.mark.parametrize("make", SOLVABLE)
def test_the_oracle_of_the_paper_knows_the_optima_worked_out_by_hand(make: object) -> None:
    assert callable(make)
    found: Instance = make()
    if len(found.devices.names) ** len(found.graph) <= 3_000:
        value = paper_values(found.graph, found.devices, "throughput")["chain"]
        assert value == pytest.approx(found.optimum, rel=1e-12)


@pytest.mark.parametrize("objective", ["throughput", "gpipe"])
def test_two_oracles_that_share_nothing_agree(objective: str) -> None:
    """On all splits of the graphs that are small enough for plain Python."""
    seen = 0
    for seed in range(60):
        graph, devices = random_workload(np.random.default_rng([seed, 7]), 5, 3)
        if len(devices.names) ** len(graph) > 300:
            continue
        seen += 1
        known = best_values(graph, devices, objective)
        for split, value in paper_values(graph, devices, objective).items():
            assert (np.inf if known[split] is None else known[split]) == pytest.approx(value, rel=1e-12), seed
    assert seen > 30
