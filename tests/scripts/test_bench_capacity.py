"""The benchmark deals blocks as it says, beats them, and writes the committed workload."""

from __future__ import annotations

from pathlib import Path

import bench_capacity
import pytest

import partitioner as pt

INSTANCE = Path(__file__).parents[2] / "instances" / "serving" / "llama-3-8b.json"


def test_the_plan_holds_more_than_the_usual_ways(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_capacity.main(["llama-3-8b", "--markdown", "--slowdowns", "1"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()][2:]
    held = {row[1]: int(row[2].replace(",", "")) for row in rows}
    assert list(held)[-2:] == ["capacity within 1 x the least time", "capacity"]
    assert held["capacity"] == max(held.values()) and held["capacity"] > 1.9 * held["equal layers"]


def test_the_committed_workload_is_written_again(tmp_path: Path) -> None:
    assert bench_capacity.main(["llama-3-8b", "--save", str(tmp_path)]) == 0
    assert (tmp_path / INSTANCE.name).read_text() == INSTANCE.read_text()


def test_blocks_are_dealt_in_proportion_and_the_ends_go_along() -> None:
    assert bench_capacity.in_proportion(10, [1.0, 1.0, 2.0]) == [3, 2, 5]
    layers = [f"model.{name}" for name in ("embed", "layers.0", "layers.1", "layers.2", "norm")]
    graph = pt.Graph.from_arrays({"gpu": [1.0] * 5}, ids=layers, layer=layers)
    placement = bench_capacity.dealt(graph, ["gpu0", "gpu1"], [1, 2])
    assert list(placement.values()) == ["gpu0", "gpu0", "gpu1", "gpu1", "gpu1"]


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(SystemExit):
        bench_capacity.main(["gpt-5"])
