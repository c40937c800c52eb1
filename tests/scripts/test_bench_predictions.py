"""The rows of predictions name each runner; each step of a prediction is the simulation of its graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="measured pipelines need torch")
pytest.importorskip("torch.distributed.pipelining", reason="measured pipelines need torch's pipelining")
import bench_predictions  # noqa: E402
from torch import nn  # noqa: E402
from truth_bench.sequences import SEQUENCES, Case  # noqa: E402

from partitioner.integrations.torch.verification import Corrections  # noqa: E402
from partitioner.integrations.torch.verification.model_passes import WholePasses  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
TERMS = {"library": Corrections(1.5), "torch": Corrections(2.0, pass_time=1.0)}


@pytest.fixture
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_each_step_of_a_prediction_worked_by_hand() -> None:
    """Two equal stages of 1 and 2 ms under 1F1B take 9 times 3 ms for 8 microbatches."""
    time, flags = {"accelerator": [1.0, 1.0, 2.0, 2.0]}, [False, False, True, True]
    graph = pt.Graph.from_arrays(time, [(0, 1), (1, 2), (2, 3)], [0.0] * 3, backward=flags)
    home = {0: "accelerator0", 1: "accelerator1", 2: "accelerator1", 3: "accelerator0"}
    model = bench_predictions.Prepared(Case(None, None, None, (1, 2)), graph, {"1": (home, None, None)})
    names = "m", "1", "1f1b", "torch"
    turn = bench_predictions.Turn(
        TERMS, {"m": (WholePasses(4, 8), WholePasses(2, 4))}, {names: (120.0, 20.0)}
    )
    row = bench_predictions.row_of(names, model, turn)
    assert row == (names, (27.0, 54.0, 9 * (12 + 2)), 120.0, (24.0, 20.0))
    assert row.errors[-1] == pytest.approx(0.05) and row.cpu_error == pytest.approx(0.2)
    assert "torch, all terms: median 5.0%, worst 5.0% of 1 batches" in list(
        bench_predictions.summary([row, row._replace(names=("m", "1", "1f1b", "library"))])
    )


def test_each_figure_of_the_turns_has_its_own_median() -> None:
    key = "m", "1", "1f1b", "torch"
    turns = [
        bench_predictions.Turn(
            {"torch": Corrections(1.0 + i)}, {"m": (WholePasses(i, -i), WholePasses(0, i))}, {key: (i, 2 - i)}
        )
        for i in range(3)
    ]
    found = bench_predictions.medians(turns)
    assert found.corrections == {"torch": Corrections(2.0)}
    assert found.passes == {"m": (WholePasses(1, -1), WholePasses(0, 1))} and found.runs == {key: (1, 1)}


@pytest.mark.slow
def test_both_runners_run_a_small_model(one_thread: None, monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(*(nn.Linear(16, 16) for _ in range(4)))
    case = Case(model, torch.ones(4, 16), torch.zeros(4, 16), (1, 2))
    monkeypatch.setattr(bench_predictions, "runtime_corrections", lambda how, message: Corrections(1.5))
    models = {"small": bench_predictions.prepared(case, 1e6, 0.1)}
    turn = bench_predictions.measured(models, 0.0, 1)
    assert len(turn.runs) == 2 * 2 * 2
    for names in turn.runs:
        row = bench_predictions.row_of(names, models["small"], turn)
        assert min(*row.predicted, row.measured, *row.busiest) > 0


@pytest.mark.parametrize("name", SEQUENCES)
def test_models_are_sequences_that_can_be_cut(name: str) -> None:
    case = SEQUENCES[name]()
    assert all(0 < cut < len(case.model) for cut in case.cuts)
    assert case.model(case.sample).shape == case.target.shape
