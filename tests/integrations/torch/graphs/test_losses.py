"""All of the loss is on one device, which in a chain is the last one, also what only reads its targets."""

from __future__ import annotations

from typing import Any

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="graphs of models need torch")
from partitioner.integrations.torch import graph_of  # noqa: E402
from partitioner.integrations.torch.pipelines import stages_of  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
nn = torch.nn


class Towers(nn.Module):  # type: ignore[misc, name-defined]
    """Two results, the first of which is there before the second is begun; layers outlast the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(512, 512), nn.Linear(512, 512)
        self.middle = nn.ModuleList(nn.Linear(512, 512) for _ in range(4))

    def forward(self, x: Any) -> Any:
        hidden = torch.tanh(self.first(x))
        early = hidden.sum(-1)
        for layer in self.middle:
            hidden = torch.tanh(layer(hidden))
        return early, self.second(hidden)


def loss(output: Any, target: Any) -> Any:
    weight = torch.sqrt(target * target + 1).mean()
    return (output[0] ** 2).mean() + weight * (output[1] ** 2).mean()


def graph(granularity: str) -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    model, args = Towers(), (torch.randn(64, 512),)
    given: dict[str, Any] = {"loss": loss, "targets": (torch.randn(64),), "training": True}
    return (
        model,
        args,
        graph_of(
            model, args, device="CPU", bandwidth=1e15, dtype="float32", granularity=granularity, **given
        ),
    )


def test_the_loss_is_one_class() -> None:
    _, _, found = graph("operator")
    names = {"mul", "sqrt", "mean", "mean_1", "mean_2"}
    colours = {int(found.color[i]) for i, node in enumerate(found.ids) if node in names}
    assert len(colours) == 1
    assert min(colours) >= 0


@pytest.mark.parametrize("granularity", ["operator", "module", "block"])
@pytest.mark.parametrize("count", [2, 3])
def test_plans_are_cut_into_stages_with_the_loss_last(granularity: str, count: int) -> None:
    model, args, found = graph(granularity)
    plan = pt.solve(found, pt.Devices.accelerated(count), split="chain")
    stages = stages_of(model, args, found, plan)
    assert len(stages.modules) == count


def test_the_loss_is_counted_to_the_last_module() -> None:
    _, _, found = graph("block")
    fields = {node: one["operators"] for node, one in zip(found.ids, found.extras.nodes, strict=True)}
    assert {"sqrt", "mean", "mean_1", "mean_2"} <= {*fields["second"]}


class Weights(nn.Module):  # type: ignore[misc, name-defined]
    """Weights of experts that are divided in place and then seen as one column, as in mixtures."""

    def __init__(self) -> None:
        super().__init__()
        self.router, self.inner = nn.Linear(8, 8), nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x: Any) -> Any:
        best, _ = torch.topk(torch.softmax(self.router(x), -1), 2)
        best /= best.sum(-1, keepdim=True)
        column = best.reshape(-1).unsqueeze(-1)
        return self.inner[1](column * self.inner[0](x.repeat(2, 1)))


@pytest.mark.parametrize("granularity", ["operator", "module", "block"])
def test_operators_with_a_backward_pass_only_stay_with_what_they_read(granularity: str) -> None:
    torch.manual_seed(0)
    model, args = Weights(), (torch.randn(2, 8),)
    found = graph_of(
        model,
        args,
        device="CPU",
        bandwidth=1e15,
        dtype="float32",
        granularity=granularity,
        training=True,
        loss=lambda output: (output**2).mean(),
    )
    forward = {
        name for i, one in enumerate(found.extras.nodes) if not found.backward[i] for name in one["operators"]
    }
    alone = [i for i, one in enumerate(found.extras.nodes) if not forward.issuperset(one["operators"])]
    if granularity == "operator":
        assert alone
        assert {int(found.color[i]) for i in alone} == {int(found.color[found.ids.index("div_")])}
    plan = pt.solve(found, pt.Devices.accelerated(2), split="chain")
    stages_of(model, args, found, plan)
