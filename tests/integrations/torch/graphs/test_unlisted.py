"""What no gradient comes from is in no node of a training graph; placed modules and pipelines run it."""

from __future__ import annotations

from typing import Any

import pytest

import partitioner as pt
from partitioner import WorkloadError

torch = pytest.importorskip("torch", reason="graphs of models need torch")
from partitioner.integrations.torch import graph_of, place  # noqa: E402
from partitioner.integrations.torch.pipelines import in_processes, run_pipeline, stages_of  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
nn = torch.nn


class Plain(nn.Module):  # type: ignore[misc, name-defined]
    """Layers with names that a module of ours could have."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        self.loss = nn.Linear(4, 4)
        self.register_buffer("rows", torch.arange(4.0).expand(2, 4))

    def forward(self, x: Any) -> Any:
        return self.loss(self.model(x))


class Dead(Plain):
    """Operators without inputs whose results nothing reads, as in masks that a kernel does not need."""

    def forward(self, x: Any) -> Any:
        unused = torch.arange(x.shape[0])[:, None]
        _ = unused >= torch.arange(x.shape[1])
        return super().forward(x)


class Constant(Plain):
    """A constant that the last layer alone needs, and a buffer whose conversion changes nothing."""

    def forward(self, x: Any) -> Any:
        steps = torch.arange(x.shape[1])
        rows = self.rows.float()
        return self.loss(self.model(x) + torch.exp(-steps.float())) * rows[0]


class Pooled(Plain):
    """A second result with parameters of its own, which the loss does not read."""

    def __init__(self) -> None:
        super().__init__()
        self.pooler = nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        hidden = self.model(x)
        return self.loss(hidden), torch.tanh(self.pooler(hidden))


def squares(output: Any, target: Any) -> Any:
    found = output[0] if isinstance(output, tuple) else output
    return ((found - target) ** 2).mean()


def case(kind: type[Any]) -> tuple[Any, tuple[Any, ...], Any, Any]:
    """A model, the arguments of a call, a target, and a graph for training."""
    torch.manual_seed(0)
    model, args, target = kind(), (torch.randn(2, 4),), torch.randn(2, 4)
    scored: dict[str, Any] = {"loss": squares, "targets": (target,)}
    graph = graph_of(model, args, device="CPU", bandwidth=1e9, training=True, dtype="float32", **scored)
    return model, args, target, graph


def halves(graph: Any) -> dict[Any, str]:
    """The first linear layer on one device, the rest on another one."""
    first = {"linear", "linear/backward"}
    return {node: f"accelerator{int(node not in first)}" for node in graph.ids}


def gradients(model: Any, args: Any, target: Any) -> dict[str, Any]:
    model.zero_grad()
    squares(model(*args), target).backward()
    found = {path: one.grad for path, one in model.named_parameters() if one.grad is not None}
    model.zero_grad()
    return found


@pytest.mark.parametrize("kind", [Dead, Constant, Pooled])
def test_a_pipeline_trains(kind: type[Any]) -> None:
    model, args, target, graph = case(kind)
    stages = stages_of(model, args, graph, halves(graph))

    def work(_: int) -> Any:
        run_pipeline(stages, args, target, microbatches=1, loss=squares)
        return {path: one.grad for path, one in model.named_parameters() if one.grad is not None}

    ranks = in_processes(work, len(stages.devices), seconds=120)
    found = {path: grad for rank in ranks for path, grad in rank.items()}
    expected = gradients(model, args, target)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[path], grad) for path, grad in expected.items())


@pytest.mark.parametrize("kind", [Plain, Dead, Constant, Pooled])
def test_a_placed_module_trains(kind: type[Any]) -> None:
    model, args, target, graph = case(kind)
    placed = place(model, args, graph, halves(graph), loss=squares, targets=(target,))
    placed(*args, target).backward()
    expected = gradients(model, args, target)
    found = {path: one.grad for path, one in placed.named_parameters() if one.grad is not None}
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[path], grad) for path, grad in expected.items())


def test_a_constant_is_made_where_it_is_read() -> None:
    model, args, _, graph = case(Constant)
    stages = stages_of(model, args, graph, halves(graph))
    assert "arange" in stages.modules[1].operators
    assert len(stages.modules[1].inputs) == 1


def test_a_loss_with_parameters_beside_a_child_of_that_name() -> None:
    class Loss(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(4))

        def forward(self, output: Any, target: Any) -> Any:
            return (self.weight * (output - target) ** 2).mean()

    model, args, target, _ = case(Plain)
    scored: dict[str, Any] = {"loss": Loss(), "targets": (target,)}
    graph = graph_of(model, args, device="CPU", bandwidth=1e9, training=True, dtype="float32", **scored)
    numbers = sum(one.numel() for one in model.parameters()) + 4
    assert graph.parts[0].sum() == 4 * numbers
    placed = place(model, args, graph, halves(graph), **scored)
    assert torch.equal(placed(*args, target), squares(model(*args), target))


def test_a_graph_of_another_model_is_refused() -> None:
    class Longer(Plain):
        def forward(self, x: Any) -> Any:
            return super().forward(self.model(x))

    _, _, _, graph = case(Plain)
    with pytest.raises(WorkloadError, match=r"operator linear_3: is in no node of the graph"):
        stages_of(Longer(), (torch.randn(2, 4),), graph, dict.fromkeys(graph.ids, "accelerator0"))


def test_plans_of_such_models_are_solved() -> None:
    _, _, _, graph = case(Constant)
    assert pt.solve(graph, pt.Devices.accelerated(2), split="chain").status == "optimal"
