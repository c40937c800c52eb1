"""The smallest or cheapest part of a pool that serves a load is that of all parts, and no bound is wrong."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.cli.command_line import main
from partitioner.planning.serving import search as searching
from tests.planning.serving.test_plan_serving import config

ASKED: dict[str, Any] = {"prompt": 64, "generate": 32}


def best_of(pool: dict[str, int]) -> float:
    """Return the most tokens per second of a pool."""
    try:
        return pt.plan_serving(config(), pool, top=1, **ASKED).best.tokens_per_second
    except pt.InfeasibleError:
        return 0.0


def agree(seed: int) -> None:
    """Compare the part that is found with all parts of a small pool."""
    rng = np.random.default_rng(seed)
    names = [str(name) for name in rng.choice(["A100-80", "H100", "L40S"], 2, replace=False)]
    names = names[: int(rng.integers(1, 3))]
    pool = {name: int(rng.integers(1, 4)) for name in names}
    prices = {name: float(rng.uniform(1, 4)) for name in names} if rng.random() < 0.5 else None
    counts = [each for each in product(*(range(pool[name] + 1) for name in names)) if any(each)]
    parts = [{name: n for name, n in zip(names, each, strict=True) if n} for each in counts]
    rates = [best_of(part) for part in parts]
    costs = [sum(n * (prices or {}).get(name, 1.0) for name, n in part.items()) for part in parts]
    wanted = float(rng.choice(rates)) * float(rng.uniform(0.7, 1.05))
    enough = [cost for cost, rate in zip(costs, rates, strict=True) if rate >= wanted]
    asked = {"requests_per_second": wanted / ASKED["generate"], "prices": prices}
    if not enough:
        with pytest.raises(pt.InfeasibleError, match="serve at most"):
            pt.plan_serving(config(), pool, **asked, **ASKED)
        return
    found = pt.plan_serving(config(), pool, **asked, **ASKED)
    price = sum(kind.count * (prices or {}).get(kind.name, 1.0) for kind in found.pool)
    assert price == pytest.approx(min(enough)) and found.best.tokens_per_second >= wanted * (1 - 1e-9)
    less = [rate for cost, rate in zip(costs, rates, strict=True) if cost < price * (1 - 1e-9)]
    assert found.fewer is not None and found.fewer < wanted
    assert max(less, default=0.0) <= found.fewer * (1 + 1e-9)


def test_the_part_is_the_cheapest_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BATCH", 4)
    for seed in range(4):
        agree(seed)


@pytest.mark.slow
def test_the_part_is_the_cheapest_of_all_in_many_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_BATCH", 8)
    for seed in range(100, 130):
        agree(seed)


def test_the_summary_says_that_fewer_do_not_suffice() -> None:
    one, two = best_of({"H100": 1}), best_of({"H100": 2})
    wanted = (one + two) / 2 / ASKED["generate"]
    found = pt.plan_serving(config(), {"H100": 9}, requests_per_second=wanted, **ASKED)
    assert [kind.count for kind in found.pool] == [2] and "2 H100 for" in found.summary(200)
    assert ("no smaller or cheaper part" in found.summary(200)) == bool(found.fewer)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"requests_per_second": 0.0}, "requests_per_second = 0.0: must be a number above 0"),
        ({"requests_per_second": 1.0, "users": 1}, "users = 1: is not for requests_per_second"),
        ({"prices": {"H100": 1.0}}, "prices = {'H100': 1.0}: are for requests_per_second"),
        ({"requests_per_second": 1.0, "prices": {"L40S": 1.0}}, "prices['H100'] = None: must be a number"),
    ],
)
def test_options_out_of_range_are_refused_by_name(given: dict[str, Any], said: str) -> None:
    with pytest.raises(pt.OptionError, match=re.escape(said)):
        pt.plan_serving(config(), {"H100": 1}, **ASKED, **given)


def test_the_command_finds_the_fewest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (file := tmp_path / "config.json").write_text(json.dumps(config()), encoding="utf-8")
    asked = ["plan", str(file), "--serve", "--prompt", "64", "--generate", "32", "--requests-per-second", "9"]
    assert main([*asked, "--device", "H100", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["pool"]["H100"]["count"] == 1
    assert main([*asked, "--pool", "H100=1,L40S=1", "--prices", "H100=3,L40S=1", "--format", "json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["pool"]) == ["L40S"]
    with pytest.raises(SystemExit):
        main([*asked, "--device", "H100", "--prices", "H100"])
