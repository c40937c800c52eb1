"""A profile is the captured graph with measured figures; it leaves the model and torch as they were."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.base.errors import BackendUnavailable, OptionError
from partitioner.integrations.torch import graph_of, profile
from partitioner.integrations.torch.graphs.granularity import GRANULARITIES

torch = pytest.importorskip("torch", reason="profiles of torch's models need torch")
from torch import nn  # noqa: E402

from tests.integrations.torch.models import MODELS, made  # noqa: E402

QUICK: dict[str, Any] = {"bandwidth": 1e9, "warm_up": 0, "tolerance": 1e9}  # the fewest rounds
WAYS = [("experts", False), ("cnn", True), ("experts", True)]
ALL = [(name, training) for name in MODELS for training in (False, True)]
LONG = [pytest.param(*way, marks=pytest.mark.slow) for way in ALL if way not in WAYS]


class Chancy(nn.Module):  # type: ignore[misc]
    """A model that draws random numbers, writes into its buffer, and takes more than tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)
        self.register_buffer("count", torch.zeros(1))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("variance", torch.ones(4))

    def forward(self, x: Any, factor: int = 1, *, shift: Any = None) -> Any:
        self.count += 1
        x = nn.functional.batch_norm(x, self.mean, self.variance, training=True)
        return self.drop(self.inner(x * factor)) + shift + torch.tensor([1.0, 2.0, 3.0, 4.0])


class Growing(nn.Module):  # type: ignore[misc]
    """A model that writes into a parameter, by a view of it, in the forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.other = (nn.Parameter(torch.ones(2, 2), requires_grad=False) for _ in range(2))

    def forward(self, x: Any, *, first: Any, second: Any) -> Any:
        self.weight.view(-1)[0].add_(1)
        return x @ self.weight @ self.other @ first + second


def state(model: Any) -> list[Any]:
    """Everything of a model and of torch that a profile could change."""
    tensors = [tensor.clone() for tensor in (*model.parameters(), *model.buffers())]
    gradients = [each.grad is None or each.grad.clone() for each in model.parameters()]
    versions = [each._version for each in (*model.parameters(), *model.buffers())]
    flags = [each.training for each in model.modules()]
    plain = versions, flags, torch.is_grad_enabled(), torch.get_num_threads()
    return [*tensors, *gradients, torch.get_rng_state(), plain]


def same(before: list[Any], after: list[Any]) -> bool:
    return len(before) == len(after) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
        for a, b in zip(before, after, strict=True)
    )


@pytest.mark.parametrize(("name", "training"), [*WAYS, *LONG])
def test_the_graph_is_that_of_the_capture_with_measured_times(
    name: str, training: bool, tmp_path: Path
) -> None:
    """At several granularities; the operators are measured once, so that the sums of the times are equal."""
    sums = []
    for granularity in GRANULARITIES[:: 2 if training else 1]:
        given: dict[str, Any] = {"training": training, "granularity": granularity}
        found = profile(*made(name), **{**QUICK, **given, "cache": tmp_path}).graph
        plain = graph_of(*made(name), bandwidth=1e9, device="H100", **given)
        sums.append(found.time.sum())
        assert (found.ids, found.layer_labels) == (plain.ids, plain.layer_labels)
        for field in ("edges", "cost", "color", "size", "backward"):
            assert np.array_equal(getattr(found, field), getattr(plain, field))
        assert np.array_equal(found.parts[:4], plain.parts[:4])
        kept = [{**node, "outputBytes": 0, "temporaryBytes": 0} for node in plain.extras.nodes]
        assert [node.keys() for node in found.extras.nodes] == [node.keys() for node in kept]
    assert sums == pytest.approx([sums[0]] * len(sums))
    assert sums[0] > 0
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("name", ["cnn", "chancy"])
def test_the_model_and_torch_stay_as_they_are(name: str, training: bool) -> None:
    if name == "cnn":
        model, args = made(name)
        kwargs = None
    else:
        model, args, kwargs = Chancy(), (torch.randn(3, 4), 2), {"shift": torch.ones(4)}
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    list(model.modules())[-1].eval()
    before, inputs = state(model), [each.clone() for each in args if isinstance(each, torch.Tensor)]
    assert profile(model, args, kwargs, training=training, **QUICK).graph.time.sum() > 0
    assert same(before, state(model))
    assert same(inputs, [each for each in args if isinstance(each, torch.Tensor)])


def test_a_parameter_that_the_model_writes_into_stays_as_it_is() -> None:
    """The keywords come in another order than the model's; the product fails if they are confused."""
    model, x = Growing(), torch.ones(3, 2)
    keywords = {"second": torch.ones(5), "first": torch.ones(2, 5)}
    before = state(model)
    found = profile(model, (x,), keywords, training=False, **QUICK)
    assert found.graph.time.sum() > 0
    assert same(before, state(model))


def test_a_loss_has_a_time_of_its_own() -> None:
    model, args = made("cnn")
    loss, targets = torch.nn.functional.cross_entropy, (torch.tensor([1, 2]),)
    found = profile(model, args, loss=loss, targets=targets, **QUICK).graph
    plain = graph_of(model, args, loss=loss, targets=targets, training=True, device="H100", bandwidth=1e9)
    assert found.ids == plain.ids
    assert any("loss" in str(name) for name in found.ids)


def test_equal_layers_take_the_same_time() -> None:
    """Layers of equal shapes are measured together; a layer of another shape, and another pass, is not."""
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64), nn.Linear(64, 32))
    graph = profile(model, (torch.ones(32, 64),), **QUICK).graph
    time = dict(zip(graph.ids, graph.time[0].tolist(), strict=True))
    assert time["linear"] == time["linear_1"] > 0
    assert len({time["linear"], time["linear_2"], time["linear_1/backward"]}) == 3


def test_edges_cost_their_bytes_without_a_bandwidth() -> None:
    given = {**QUICK, "bandwidth": None}
    found = profile(*made("experts"), **given).graph
    assert np.allclose(found.cost, profile(*made("experts"), **QUICK).graph.cost * 1e6)
    assert "bandwidth" not in found.extras.top


def test_a_workload_is_saved_and_solved(tmp_path: Path) -> None:
    found = profile(*made("experts"), granularity="block", **QUICK)
    found.save(tmp_path / "workload.json")
    assert pt.load(tmp_path / "workload.json").sha256 == found.sha256
    assert found.devices == pt.Devices.accelerated(2)


def test_a_request_to_stop_is_heard_between_operators() -> None:
    """Before the first round nothing is known."""
    event = threading.Event()
    event.set()
    with pytest.raises(pt.NoPlanFound, match="the profile was stopped before a round was complete"):
        profile(*made("experts"), stop=event, **QUICK)


def test_the_rounds_until_a_stop_count(tmp_path: Path) -> None:
    event, seen = threading.Event(), list[pt.Progress]()

    def report(progress: pt.Progress) -> None:
        seen.append(progress)
        if progress.phase == "profiling" and progress.done == 3:
            event.set()

    found = profile(*made("experts"), stop=event, on_progress=report, cache=tmp_path, **QUICK)
    assert found.graph.extras.top["rounds"] == 3
    assert "the times still changed after 3 rounds" in found.graph.extras.top["notes"][-1]
    assert [each.phase for each in seen] == ["memory", *["profiling"] * 4]
    assert not list(tmp_path.iterdir())


def test_ctrl_c_before_a_round_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    def pressed(progress: pt.Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt, match="interrupted before a round was complete"):
        profile(*made("experts"), on_progress=pressed, **QUICK)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("clock", "sun", "clock = 'sun': must be one of thread, elapsed"),
        ("device", "tpu", "device = 'tpu': must be 'cpu' or 'cuda'"),
        ("device", 3, "device = 3: must be"),
        ("device", "cuda:99", r"device = 'cuda:99': torch finds \d+ CUDA devices"),
        ("warm_up", -1, "warm_up = -1: must be an integer of at least 0"),
        ("granularity", "layer", "granularity = 'layer': must be one of operator, module, block"),
        ("on_progress", 3, "on_progress = 3: must be a function"),
        ("bandwidth", 0, "bandwidth = 0: must be a number above 0"),
    ],
)
def test_an_option_out_of_range_is_named(option: str, value: object, text: str) -> None:
    model, args = made("experts")
    with pytest.raises(OptionError, match=text):
        profile(model, args, **{**QUICK, option: value})


def test_a_model_without_data_is_refused_by_the_name_of_a_tensor() -> None:
    with torch.device("meta"):
        model, args = torch.nn.Linear(2, 2), (torch.zeros(1, 2),)
    with pytest.raises(OptionError, match=r"device = 'cpu': parameter weight is on the device 'meta'"):
        profile(model, args, **QUICK)
    with pytest.raises(OptionError, match=r"device = 'cpu': argument 1 is on the device 'meta'"):
        profile(torch.nn.Linear(2, 2), args, **QUICK)


def test_without_torch_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partitioner.integrations.torch.installed.find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match="need torch: pip install"):
        profile(None, (), bandwidth=1e9)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no CUDA device on this machine")
@pytest.mark.parametrize(("name", "training"), ALL)
def test_a_cuda_device_is_measured_by_its_events(name: str, training: bool) -> None:
    model, args = made(name)
    on_device = model.to("cuda"), tuple(each.to("cuda") for each in args)
    before = state(model)
    found = profile(*on_device, device="cuda", training=training, granularity="module", **QUICK).graph
    assert found.time.sum() > 0
    assert found.parts[4].sum() > 0
    assert same(before, state(model))
