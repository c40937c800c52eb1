"""Processes that run any placement of a model's operators compute its gradients and buffers, bit for bit."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="steps of torch's models need torch")
from partitioner.integrations.torch import graph_of  # noqa: E402
from partitioner.integrations.torch.graphs.capture import seen_and_captured  # noqa: E402
from partitioner.integrations.torch.graphs.joint import is_backward  # noqa: E402
from partitioner.integrations.torch.separate.step import SeparateStep, run_separate  # noqa: E402
from tests.integrations.torch.placing.models import doubled, scattered  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
SECONDS = 120
NAMES = ("gpt", "cnn", "unet", "experts", "constants")
OPTIONS: dict[str, Any] = {"device": "H100", "bandwidth": 1e14, "training": True}


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Sums over threads are added in another order: the plain model has one, as each process has."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def loss_of(found: Any) -> Any:
    """A loss whose gradients differ from one another."""
    return found.square().mean() + found.sin().sum() / 7


def made(name: str) -> tuple[Any, tuple[Any, ...], pt.Graph]:
    """A model in 64 bits, the arguments of a call, and its graph with this loss."""
    model, args = doubled(name)
    return model, args, graph_of(model, args, loss=loss_of, **OPTIONS)


def check(model: Any, args: tuple[Any, ...], step: SeparateStep) -> None:
    """Compare a step with the plain model."""
    twin = copy.deepcopy(model)
    expected = loss_of(twin(*args))
    expected.backward()
    assert torch.equal(step.loss, expected)
    wanted = {path: one.grad for path, one in twin.named_parameters() if one.grad is not None}
    assert step.gradients.keys() == wanted.keys()
    assert [path for path, one in wanted.items() if not torch.equal(step.gradients[path], one)] == []
    before = dict(model.named_buffers())
    for path, one in twin.named_buffers():
        assert torch.equal(step.buffers.get(path, before[path]), one), path


def placed_at_random(name: str, count: int, seed: int) -> None:
    model, args, graph = made(name)
    placement = scattered(graph, count, seed)
    step = run_separate(model, args, graph, placement, loss=loss_of, seconds=SECONDS)
    assert len(step.ran) == count and all(step.sent.values())
    check(model, args, step)


@pytest.mark.parametrize(("name", "count"), [("cnn", 2)])
def test_random_placements(name: str, count: int) -> None:
    placed_at_random(name, count, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), [*product(("gpt", "cnn", "unet", "experts", "constants"), (2, 3))]
)
def test_random_placements_of_every_model(name: str, count: int) -> None:
    """Tied weights, batch normalisation, skip connections, experts, and tensors that are no buffers."""
    for seed in range(2):
        placed_at_random(name, count, seed)


def in_order(graph: pt.Graph, seed: int) -> list[Any]:
    """A random order of all nodes, producers first."""
    rng = random.Random(seed)
    before = {i: {int(u) for u, v in graph.edges if v == i} for i in range(len(graph))}
    order: list[int] = []
    while len(order) < len(graph):
        order.append(rng.choice([i for i in before if i not in order and before[i] <= set(order)]))
    return [graph.ids[i] for i in order]


def test_each_process_runs_in_the_order_of_the_plan() -> None:
    """Every call reads what ran before; results stay bit-equal, since additions stay where they were."""
    model, args, graph = made("experts")
    plain = run_separate(model, args, graph, scattered(graph, 2, 3), loss=loss_of, seconds=SECONDS)
    order = in_order(graph, 5)
    plan = pt.Solution(scattered(graph, 2, 3), execution_order=tuple(order))
    step = run_separate(model, args, graph, plan, loss=loss_of, seconds=SECONDS)
    check(model, args, step)
    assert {name: sorted(calls) for name, calls in step.ran.items()} == {
        name: sorted(calls) for name, calls in plain.ran.items()
    }
    assert step.ran != plain.ran
    assert step.sent == plain.sent
    seen, _ = seen_and_captured(model, args, {}, True, loss_of, ())
    suffix = {node.name: "/backward" * is_backward(node) for node in seen.graph.nodes}
    position = {node: i for i, node in enumerate(order)}
    for calls in step.ran.values():
        ran = [position[seen.owner[name] + suffix[name]] for name in calls]
        assert ran == sorted(ran)


@pytest.mark.slow
def test_plans_for_the_least_makespan_run() -> None:
    """The placer's device of each operator and the order in which it starts them."""
    model, args, graph = made("unet")
    plan = pt.solve(graph, pt.Devices.accelerated(2), "makespan", method="m-sct")
    assert plan.execution_order is not None
    check(model, args, run_separate(model, args, graph, plan, loss=loss_of, seconds=SECONDS))


class Noisy(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Dropout twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.drop = torch.nn.Linear(4, 4), torch.nn.Dropout(0.5)

    def forward(self, x: Any) -> Any:
        return self.drop(self.drop(self.layer(x)).sin())


def test_operators_that_draw_on_several_devices_are_refused() -> None:
    model, args = Noisy(), (torch.ones(2, 4),)
    graph = graph_of(model, args, loss=loss_of, **OPTIONS)
    apart = {node: f"accelerator{int('dropout_1' in str(node))}" for node in graph.ids}
    with pytest.raises(pt.WorkloadError, match="operator dropout_1: accelerator1: draws at random"):
        run_separate(model, args, graph, apart, loss=loss_of)
