"""The fewest GPUs with a rate: every smaller number of whole servers is ranked, and is too slow."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import partitioner as pt
from partitioner.cli.command_line import main
from tests.planning.layouts.test_timing import CONFIG

ASKED = {"device": "A100-80", "global_batch": 8, "sequence": 512, "node": 4, "top": 1, "time_limit": None}


@pytest.fixture(scope="module")
def rates() -> dict[int, float]:
    """The tokens per second of the best layout on each number of GPUs."""
    found = {}
    for gpus in (1, 2, 4, 8, 12, 16):
        try:
            found[gpus] = pt.plan(CONFIG, gpus=gpus, **ASKED).best.tokens_per_second  # type: ignore[arg-type]
        except pt.InfeasibleError:  # a batch of 8 is no multiple of 12
            found[gpus] = 0.0
    return found


@pytest.mark.parametrize("share", [0.3, 0.9, 1.4, 2.5])
def test_all_smaller_numbers_are_too_slow(share: float, rates: dict[int, float]) -> None:
    wanted = share * rates[4]
    expected = next((gpus for gpus, rate in rates.items() if rate >= wanted), None)
    if expected is None:
        return
    found = pt.plan(CONFIG, tokens_per_second=wanted, **ASKED)  # type: ignore[arg-type]
    assert found.cluster.gpus == expected and found.best.tokens_per_second >= wanted
    assert found.summary().startswith(f"{expected} GPUs, the fewest with")
    assert found.as_dict()["tokens_per_second"] == wanted


def test_a_rate_beyond_the_batch_is_infeasible() -> None:
    with pytest.raises(pt.InfeasibleError, match=r"up to 32 GPUs have at most .* 8 sequences has no work"):
        pt.plan(CONFIG, tokens_per_second=1e8, **ASKED)  # type: ignore[arg-type]


def test_what_equal_stages_lack_alone_is_no_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound that the rate does not exceed leaves unequal stages."""
    monkeypatch.setattr("partitioner.planning.layouts.search.least_time", lambda run: 1e-9)
    with pytest.raises(pt.NoPlanFound, match=r"up to 32 GPUs have .* in equal stages, and a batch of 8"):
        pt.plan(CONFIG, tokens_per_second=1e8, **ASKED)  # type: ignore[arg-type]


def test_a_number_or_a_rate_must_be_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in ({}, {"gpus": 4, "tokens_per_second": 1.0}):
        with pytest.raises(pt.OptionError, match="one of gpus and tokens_per_second must be given"):
            pt.plan(CONFIG, **ASKED | given)  # type: ignore[arg-type]
    with pytest.raises(pt.OptionError, match="tokens_per_second = 0: must be a number above 0"):
        pt.plan(CONFIG, tokens_per_second=0, **ASKED)  # type: ignore[arg-type]
    (file := tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    asked = ["plan", str(file), "--device", "A100-80", "--global-batch", "16", "--sequence", "512"]
    assert main(asked) == 2
    assert main([*asked, "--tokens-per-second", "1000", "--top", "1"]) == 0
    assert capsys.readouterr().out.startswith("1 GPUs, the fewest with 1,000 tokens/s")
