"""A placed model starts its operators in the order of the plan, as far as their inputs allow it."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="placing torch's models needs torch")
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from partitioner.integrations.torch import place  # noqa: E402
from tests.integrations.torch.placing.models import doubled, gradients, graph, scattered  # noqa: E402


class Called(TorchDispatchMode):  # type: ignore[misc]
    """Records the operators that run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func._opname)
        return func(*args, **(kwargs or {}))


def in_order(found: pt.Graph, seed: int) -> list[Any]:
    """A random order of all nodes, producers first."""
    rng = random.Random(seed)
    before = {i: {int(u) for u, v in found.edges if v == i} for i in range(len(found))}
    order: list[int] = []
    while len(order) < len(found):
        ready = [i for i in before if i not in order and before[i] <= set(order)]
        order.append(rng.choice(ready))
    return [found.ids[i] for i in order]


def run_order(module: Any, found: pt.Graph) -> list[Any]:
    """The nodes of the graph in the order in which the module calls their operators."""
    node_of = {
        name: node
        for node, own in zip(found.ids, found.extras.nodes, strict=True)
        for name in own["operators"]
    }
    return list(dict.fromkeys(node_of[one.name] for one in module.graph.nodes if one.name in node_of))


@pytest.mark.parametrize("name", ["experts", "reread", pytest.param("unet", marks=pytest.mark.slow)])
def test_operators_run_in_the_order_of_the_plan(name: str) -> None:
    """Outputs stay bit-equal; gradients with more than two terms are added in another order."""
    model, args = doubled(name)
    found = graph(name)
    want, left = gradients(copy.deepcopy(model), args)
    for seed in range(3):
        order = in_order(found, seed)
        solution = pt.Solution(scattered(found, 3, seed), execution_order=tuple(order))
        module = place(model, args, found, solution)
        same = name != "reread"  # its second normalisation stays behind the first one
        assert not same or run_order(module, found) == order
        output, got = gradients(module, args)
        assert torch.equal(output, want)
        assert all(torch.allclose(got[path], left[path], rtol=1e-12, atol=1e-13) for path in left)


def test_what_really_runs_follows_the_order() -> None:
    """The four functions of one tensor run in the opposite order of the program."""
    model, args = doubled("reread")
    found = graph("reread")
    wanted = ["tanh", "exp", "cos", "sin"]
    rest = [node for node in found.ids if node not in wanted]
    order = (*rest[: rest.index("mul") + 1], *wanted, *rest[rest.index("mul") + 1 :])
    module = place(model, args, found, pt.Solution(scattered(found, 2, 1), execution_order=order))
    with Called() as called, torch.no_grad():
        module(*args)
    assert [name for name in called.names if name in wanted] == wanted


def test_plans_for_operators_one_by_one_run() -> None:
    """The order of a plan for the least makespan is kept."""
    model, args = doubled("experts")
    found = graph("experts")
    plan = pt.solve(found, pt.Devices.accelerated(2), "makespan", method="m-etf")
    assert plan.execution_order is not None
    module = place(model, args, found, plan)
    assert run_order(module, found) == list(plan.execution_order)


def test_operators_that_draw_numbers_keep_their_order() -> None:
    class Noisy(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return torch.nn.functional.dropout(x, 0.5) * 2 + torch.nn.functional.dropout(x.cos(), 0.5)

    model, args = Noisy(), (torch.ones(40, dtype=torch.float64),)
    from partitioner.integrations.torch import graph_of

    found = graph_of(model, args, device="H100", bandwidth=1e9)
    last = [node for node in found.ids if node != "add"]
    order = (*sorted(last, key=lambda node: node in ("dropout", "mul")), "add")
    assert order.index("dropout_1") < order.index("dropout")
    module = place(model, args, found, pt.Solution(scattered(found, 2, 1), execution_order=order))
    found_outputs = []
    for run in (model, module):
        torch.manual_seed(3)
        found_outputs.append(run(*args))
    assert torch.equal(*found_outputs)
