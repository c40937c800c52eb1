"""Whole passes leave the model as it is; a graph takes their times, in the shares of its nodes."""

from __future__ import annotations

import numpy as np
import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="passes of a model need torch")
pytest.importorskip("torch.distributed.pipelining", reason="measured pipelines need torch's pipelining")
from torch import nn  # noqa: E402

from partitioner.integrations.torch.verification import WholePasses, whole_passes  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]


def test_nodes_keep_their_shares_of_a_pass() -> None:
    """Forward 1 + 3 and backward 4, of two kinds, become 6 and 2; a kind without time stays without."""
    times = {"gpu": [1.0, 3.0, 4.0], "cpu": [0.0, 0.0, 8.0]}
    edges, backward = [(0, 1), (1, 2)], [False, False, True]
    graph = pt.Graph.from_arrays(times, edges, [0.0] * 2, backward=backward)
    found = WholePasses(6.0, 2.0).applied(graph)
    assert found.time.tolist() == [[1.5, 4.5, 2.0], [0.0, 0.0, 2.0]]
    assert graph.time.tolist() == [[1.0, 3.0, 4.0], [0.0, 0.0, 8.0]]


@pytest.mark.parametrize("clock", ["elapsed", "thread"])
def test_a_model_stays_as_it_is(clock: str) -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    args, targets = (torch.ones(3, 4),), (torch.zeros(3, 4),)
    loss = nn.functional.mse_loss
    found = whole_passes(model, args, loss=loss, targets=targets, rounds=3, clock=clock)
    assert found.forward > 0 and found.backward > 0
    assert whole_passes(model, args, rounds=1, processes=1).backward == 0
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(one.grad is None for one in model.parameters())


@pytest.mark.parametrize(("name", "bad"), [("processes", 0), ("rounds", 1.5), ("clock", "moon")])
def test_bad_options_are_named(name: str, bad: object) -> None:
    given: dict[str, object] = {name: bad}
    with pytest.raises(pt.OptionError, match=name):
        whole_passes(nn.Linear(1, 1), (torch.ones(1, 1),), **given)  # type: ignore[arg-type]


def test_medians_are_taken_of_all_processes_and_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward passes of 1, 2 and 9 ms and backward passes of 4 ms: 2 and 4."""
    spans = [[(0.001, 0.004), (0.002, 0.004)], [(0.009, 0.004), (0.002, 0.004)]]
    where = "partitioner.integrations.torch.verification.model_passes.in_processes"
    monkeypatch.setattr(where, lambda *_: spans)
    found = whole_passes(nn.Linear(1, 1), (torch.ones(1, 1),), loss=torch.sum)
    assert np.allclose((found.forward, found.backward), (2.0, 4.0))
