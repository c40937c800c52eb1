"""Every committed profile has its plans in the index, and planning it again predicts the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from architectures.plans import planner_layers, predictions
from architectures.profiles import PROFILES

FOLDER = Path(__file__).parents[1] / "instances" / "profiles"
INDEX = json.loads((FOLDER / "index.json").read_text(encoding="utf-8"))


def test_index_names_every_profile() -> None:
    """Files, index and generator speak of the same profiles."""
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(INDEX) == set(PROFILES)


@pytest.mark.parametrize("name", PROFILES)
def test_generator_writes_the_committed_profile(name: str) -> None:
    """The generator is deterministic: it writes the text that is committed."""
    assert PROFILES[name].text() == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", INDEX)
def test_predictions_are_found_again(name: str) -> None:
    """Times are those of the index; the optimum is proven for the same input."""
    found, known = predictions(FOLDER / f"{name}.txt"), INDEX[name]
    for states in ("antichains", "ideals"):
        assert found[states]["states"] == known[states]["states"]
        for plan, before in zip(found[states]["plans"], known[states]["plans"], strict=True):
            assert plan["levels"] == before["levels"]
            assert plan["time"] == pytest.approx(before["time"], rel=1e-9)
            assert plan["data_parallel_time"] == pytest.approx(before["data_parallel_time"], rel=1e-9)
            assert sum(layers for layers, _ in plan["stages"]) == known["nodes"]
    assert found["status"] == known["status"] == "optimal"
    assert found["optimum"] == pytest.approx(known["optimum"], rel=1e-9)
    assert found["workload_sha256"] == known["workload_sha256"]


@pytest.mark.parametrize("name", INDEX)
def test_all_ideals_predict_no_more(name: str) -> None:
    """On one level the cuts that PipeDream reaches are among all cuts, and overstate what crosses."""
    entry = INDEX[name]
    assert entry["antichains"]["states"] <= entry["ideals"]["states"]
    assert entry["ideals"]["plans"][0]["time"] <= entry["antichains"]["plans"][0]["time"]


def test_encoder_and_decoder_are_two_sources() -> None:
    """So PipeDream's planner, which starts from the first one, has fewer states and a slower plan."""
    layers = planner_layers(FOLDER / "gnmt4.txt")
    assert len(layers) - len(set(layers.edges[:, 1].tolist())) == 2
    entry = INDEX["gnmt4"]
    assert entry["antichains"]["states"] < entry["ideals"]["states"]
    assert entry["ideals"]["plans"][0]["time"] < entry["antichains"]["plans"][0]["time"]
