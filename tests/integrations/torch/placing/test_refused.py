"""What cannot be placed is refused by name, and without torch one line says how to get it."""

from __future__ import annotations

from typing import Any

import pytest

import partitioner as pt
from partitioner.base.errors import BackendUnavailable, OptionError, WorkloadError
from partitioner.integrations.torch import graph_of, place

torch = pytest.importorskip("torch", reason="placing torch's models needs torch")
from tests.integrations.torch.placing.models import doubled, graph, scattered  # noqa: E402


def refused(
    kind: type[Exception], message: str, plan: Any = None, name: str = "experts", **options: Any
) -> None:
    model, args = doubled(name)
    given = {"model": model, "args": args, "graph": graph("experts"), **options}
    found = scattered(graph("experts"), 2, 1) if plan is None else plan
    with pytest.raises(kind, match=message):
        place(given.pop("model"), given.pop("args"), given.pop("graph"), found, **given)


def test_without_torch_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    graph("experts")  # is kept, and made with torch
    monkeypatch.setattr("partitioner.integrations.torch.installed.find_spec", lambda name: None)
    refused(BackendUnavailable, r'pip install "dnn-partitioner\[torch\]"')


def test_a_plan_of_another_graph() -> None:
    other = pt.solve(graph("unet"), pt.Devices.accelerated(2))
    refused(WorkloadError, "plan: made for another workload", other)
    refused(WorkloadError, "placement of node 'conv2d': is not the id", other.placement)
    some = dict(list(scattered(graph("experts"), 2, 1).items())[1:])
    refused(WorkloadError, "is not placed on any device", some)


def test_a_graph_of_another_model() -> None:
    refused(
        WorkloadError, "operator linear_1: is in the graph, but not in the model as captured", name="unet"
    )
    refused(
        WorkloadError, "operator conv2d: is in the model as captured .*, but not in the graph", name="unet"
    )
    plain = pt.Graph.from_arrays({"accelerator": [1.0]}, [])
    refused(WorkloadError, "graph: must be made by graph_of", {0: "accelerator0"}, graph=plain)
    refused(WorkloadError, "graph: int", {0: "accelerator0"}, graph=3)


def test_a_device_without_a_device_of_torch() -> None:
    refused(OptionError, "must have a device of torch for 'accelerator1'", devices={"accelerator0": "cpu"})
    both = {"accelerator0": "cpu", "accelerator1": "nowhere"}
    refused(OptionError, "devices: 'nowhere' for 'accelerator1': Expected one of cpu", devices=both)
    both["accelerator1"] = "cuda:99"
    refused(OptionError, r"cuda:99 for 'accelerator1': this machine has \d+ CUDA devices", devices=both)


def test_operators_that_write_into_one_tensor_on_two_devices() -> None:
    found = graph("cnn")
    apart = dict.fromkeys(found.ids, "accelerator0") | {"relu_": "accelerator1"}
    refused(
        WorkloadError,
        "node 'relu_': accelerator1: must be on accelerator0 with node 'batch_norm'",
        apart,
        name="cnn",
        graph=found,
    )


def test_operators_that_write_into_an_input() -> None:
    class Writing(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any) -> Any:
            return x.mul_(x + 1) + 1

    args = (torch.ones(3),)
    found = graph_of(Writing(), args, device="H100", bandwidth=1e9)
    message = "operator mul_: must not write into input x of the model"
    apart = dict.fromkeys(found.ids, "accelerator0")
    refused(WorkloadError, message, apart, model=Writing(), args=args, graph=found)


def test_passes_of_an_operator_on_two_devices() -> None:
    found = graph("experts", training=True)
    apart = dict.fromkeys(found.ids, "accelerator0") | {"linear/backward": "accelerator1"}
    message = (
        "node 'linear/backward': accelerator1: must be on accelerator0 with node 'linear': they are passes of"
    )
    refused(WorkloadError, message, apart, graph=found)


def test_replicas() -> None:
    plan = pt.Solution(scattered(graph("experts"), 2, 1), replicas={"accelerator0": ("accelerator2",)})
    refused(WorkloadError, "replicas.*must be none", plan)


def test_a_model_without_data() -> None:
    model, _ = doubled("experts")
    refused(
        WorkloadError,
        "router.weight: has no data that could be copied to cpu",
        model=model.to("meta"),
        args=(torch.randn(2, 5, 16, dtype=torch.float64, device="meta"),),
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [({"args": 3}, "args = 3: must be a tuple"), ({"loss": 3}, "loss = 3: must be a function")],
)
def test_arguments(options: dict[str, Any], message: str) -> None:
    refused(OptionError, message, **options)


def test_chosen_alternatives() -> None:
    placed = scattered(graph("experts"), 2, 1)
    plan = pt.Solution(placed, alternatives={next(iter(placed)): "recomputed"})
    refused(WorkloadError, "a run in torch uses the own figures of nodes only", plan)
