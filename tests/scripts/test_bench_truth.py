"""The splits of other tools follow their rules, and both benchmarks of real runs print their tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="measured pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="measured pipelines need torch's pipelining")
import bench_plans  # noqa: E402
import bench_truth  # noqa: E402
from torch import nn  # noqa: E402
from truth_bench import splits  # noqa: E402

from partitioner.integrations.torch import graph_of  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]


def small() -> Any:
    layers = [nn.Sequential(nn.Linear(256, 256), nn.ReLU()) for _ in range(4)]
    return nn.Sequential(*layers), (torch.ones(64, 256),), nn.functional.mse_loss, torch.ones(64, 256)


@pytest.fixture
def one_small_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    threads = torch.get_num_threads()
    monkeypatch.setattr("truth_bench.options.MODELS", {"small": small})
    monkeypatch.setattr("truth_bench.options.prepare", lambda: torch.set_num_threads(1))
    monkeypatch.setattr("truth_bench.options.bandwidth_here", lambda: 1e9)
    monkeypatch.setattr("truth_bench.runs.MODELS", {"small": small})
    yield
    torch.set_num_threads(threads)


def chain(widths: list[int]) -> pt.Graph:
    """A chain of linear layers, each with an activation."""
    model = nn.Sequential(*(each for a, b in pairwise(widths) for each in (nn.Linear(a, b), nn.Tanh())))
    return graph_of(model, (torch.ones(1, widths[0]),), device="CPU", dtype="float32", bandwidth=1e9)


def first_of_second(graph: pt.Graph, placement: dict[Any, str]) -> int:
    return [placement[node] for node in graph.ids].index("accelerator1")


@pytest.mark.parametrize("seed", range(20))
def test_the_rules_of_other_tools(seed: int) -> None:
    """Against the rules as their documentation states them, tried for every cut."""
    widths = np.random.default_rng(seed).integers(1, 40, 7).tolist()
    graph = chain(widths)
    sizes = [(a + 1) * b * 4 for a, b in pairwise(widths)]
    weights = [size for each in sizes for size in (each, 0)]  # a linear layer, and an activation without any
    cuts = range(1, len(weights))
    largest = {cut: max(sum(weights[:cut]), sum(weights[cut:])) for cut in cuts}
    assert largest[first_of_second(graph, splits.by_parameters(graph))] == min(largest.values())
    cut = first_of_second(graph, splits.by_size(graph))
    assert weights[cut]
    assert sum(weights[:cut]) <= sum(weights) / 2 or cut == 2  # the first one is taken whatever its size
    assert sum(weights[: cut + 1]) > sum(weights) / 2
    assert first_of_second(graph, splits.equal_layers(graph)) == len(weights) / 2


def test_a_parameter_is_on_one_device() -> None:
    shared = nn.Linear(4, 4)
    model = nn.Sequential(nn.Linear(4, 4), shared, nn.Tanh(), shared, nn.Linear(4, 4))
    graph = graph_of(model, (torch.ones(1, 4),), device="CPU", dtype="float32", bandwidth=1e9)
    starts = {first_of_second(graph, splits.placed(graph, start)) for start in range(len(graph))}
    assert starts == {1, 4}


@pytest.mark.slow
@pytest.mark.usefixtures("one_small_model")
def test_both_tables_are_printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["bench", "--rounds", "1", "--seconds", "0"]
    monkeypatch.setattr("sys.argv", [*words, "--any-load"])
    bench_truth.main()
    printed = capsys.readouterr().out
    assert len([line for line in printed.splitlines() if line.startswith("| small")]) == 12
    assert "with corrections:" in printed
    assert "of 12 runs" in printed
    monkeypatch.setattr("sys.argv", words)
    bench_plans.main()
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| small")]
    assert len(lines) == 2
