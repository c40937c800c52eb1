"""What torch cannot capture is told in one line that names the module and the remedy."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import partitioner as pt
from partitioner import OptionError, PartitionerError, WorkloadError

torch = pytest.importorskip("torch", reason="graphs of models need torch")
from partitioner.integrations.torch import graph_of, place, profile  # noqa: E402
from partitioner.integrations.torch.separate.step import run_separate  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]
nn = torch.nn
COSTS: dict[str, Any] = {"device": "CPU", "bandwidth": 1e9, "dtype": "float32"}


class Calls(nn.Module):  # type: ignore[misc, name-defined]
    """A model whose child does what a function says."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.linear, self.child = nn.Linear(6, 6), Child(function)

    def forward(self, x: Any) -> Any:
        return self.child(self.linear(x))


class Child(nn.Module):  # type: ignore[misc, name-defined]
    """Does what a function says."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def branching(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x


def squares(output: Any) -> Any:
    return (output.float() ** 2).mean()


REFUSED = {
    "branch": (
        branching,
        r"module child: depends on the values of tensors in test_export_errors.py:\d+: write",
    ),
    "vmap": (torch.vmap(torch.tanh), "module child: calls torch.vmap, .*: write them over the dimension"),
    "sizes": (
        lambda x: x @ torch.ones(5, 5),
        "module child: cannot be captured by torch.export: RuntimeError: ",
    ),
}


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", REFUSED)
def test_the_module_and_the_remedy_are_named(name: str, training: bool, capfd: Any) -> None:
    function, message = REFUSED[name]
    options: dict[str, Any] = {"training": True, "loss": squares} if training else {}
    with pytest.raises(WorkloadError) as error:
        graph_of(Calls(function), (torch.randn(2, 6),), **COSTS, **options)
    assert re.match(message, str(error.value))
    assert "\n" not in str(error.value)
    assert capfd.readouterr() == ("", "")


def test_a_result_of_an_unknown_type() -> None:
    model = Calls(lambda x: SimpleNamespace(x=x))
    with pytest.raises(
        WorkloadError, match=r"model Calls: returns <class 'types.SimpleNamespace'>.*: return tensors"
    ):
        graph_of(model, (torch.randn(2, 6),), **COSTS)


def test_a_loss_that_fails() -> None:
    with pytest.raises(
        WorkloadError, match=r"loss: cannot be captured by torch.export: AttributeError: 'dict'"
    ):
        graph_of(Calls(lambda x: {"x": x}), (torch.randn(2, 6),), **COSTS, training=True, loss=squares)


def test_dynamic_quantization() -> None:
    found = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(6, 6)), {nn.Linear}, torch.qint8)
    with pytest.raises(
        PartitionerError, match=r"dynamic quantization packed.*: make the graph of the model before"
    ):
        graph_of(found, (torch.randn(2, 6),), **COSTS)


def test_autocast_inside_of_a_module_is_noted() -> None:
    def lower(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return torch.relu(x @ torch.ones(6, 6)) @ torch.ones(6, 6)

    graph = graph_of(Calls(lower), (torch.randn(2, 6),), **COSTS, training=True, loss=squares)
    note = "the operators of module child under torch.autocast are one operator"
    assert any(note in one for one in graph.extras.top["notes"])


class Transposed(nn.Module):  # type: ignore[misc, name-defined]
    """Batch normalisation returns its input's layout, which torch without data does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.last = nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(20, 3)

    def forward(self, x: Any) -> Any:
        return self.last(self.norm(self.first(x).transpose(1, 2)).relu().flatten(1))


def test_a_layout_that_is_another_with_data_is_measured_and_run() -> None:
    model, args = Transposed(), (torch.randn(2, 5, 6),)
    workload = profile(model, args, bandwidth=1e9, loss=squares, time_limit=0.1)
    plan = dict.fromkeys(workload.graph.ids, "accelerator0")
    step = run_separate(model, args, workload.graph, plan, loss=squares)
    squares(model(*args)).backward()
    for path, one in model.named_parameters():
        assert torch.allclose(step.gradients[path], one.grad, atol=1e-6), path


class Cached(nn.Module):  # type: ignore[misc, name-defined]
    """Returns a cache by default, as models of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.config = SimpleNamespace(use_cache=True)
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, *, x: Any, labels: Any = None, use_cache: bool | None = None) -> Any:
        use_cache = self.config.use_cache if use_cache is None else use_cache
        found = self.last(torch.tanh(self.first(x)))
        loss = None if labels is None else ((found - labels) ** 2).mean()
        return {"loss": loss, "found": found} | ({"cache": SimpleNamespace(found=found)} if use_cache else {})


def test_a_cache_is_left_out_and_arguments_may_all_have_names() -> None:
    model, given = Cached(), {"x": torch.randn(2, 6), "labels": torch.randn(2, 6)}
    scored: dict[str, Any] = {"loss": lambda output: output["loss"]}
    graph = graph_of(model, (), given, **COSTS, training=True, **scored)
    plan = pt.solve(graph, pt.Devices.accelerated(2), split="chain")
    placed = place(model, (), graph, plan, kwargs=given, **scored)
    assert torch.equal(placed(**given), model(**given)["loss"])
    assert model.config.use_cache


def test_a_cache_that_is_asked_for_is_refused() -> None:
    with pytest.raises(OptionError, match=r"use_cache = True: must be left out or False"):
        graph_of(Cached(), (), {"x": torch.randn(2, 6), "use_cache": True}, **COSTS)
