"""A graph of a torch model has the model's parameters, its FLOPs and what autograd keeps, to the byte."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import partitioner as pt
from partitioner.base.errors import OptionError, WorkloadError
from partitioner.integrations.torch import graph_of
from partitioner.integrations.torch.graphs.granularity import GRANULARITIES

torch = pytest.importorskip("torch", reason="graphs of torch's models need torch")
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

from partitioner.integrations.torch.graphs import joint  # noqa: E402
from partitioner.integrations.torch.graphs.flops import _formulas  # noqa: E402
from tests.integrations.torch.models import LARGER, MODELS, Chosen, Gpt, Grouped, Odd, made  # noqa: E402
from tests.integrations.torch.placing.models import Constants  # noqa: E402

PLACES = list(product(MODELS, GRANULARITIES))
WAYS = list(product(MODELS, (False, True), GRANULARITIES))
SUMS = [
    *WAYS,
    *(pytest.param(*way, marks=pytest.mark.slow) for way in product(LARGER, (False, True), GRANULARITIES)),
]


@cache
def graph(name: str, training: bool = True, granularity: str = "operator") -> pt.Graph:
    model, args = made(name)
    return graph_of(model, args, device="H100", bandwidth=50e9, training=training, granularity=granularity)


def kept(graph: pt.Graph, field: str) -> list[Any]:
    return [node.get(field, []) for node in graph.extras.nodes]


def saved_bytes(model: Any, args: tuple[Any, ...]) -> int:
    """What autograd saves of a real forward pass, without parameters and buffers."""
    held = {tensor.untyped_storage().data_ptr() for tensor in (*model.parameters(), *model.buffers())}
    saved: dict[int, int] = {}
    alive = []  # a storage that is freed could be given out again

    def pack(tensor: Any) -> Any:
        alive.append(tensor)
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(*args)
    del output
    return sum(nbytes for address, nbytes in saved.items() if address not in held)


@pytest.mark.parametrize(("name", "training", "granularity"), SUMS)
def test_parameters_are_those_of_the_model(name: str, training: bool, granularity: str) -> None:
    model, _ = made(name)
    own = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    parts = graph(name, training, granularity).parts.sum(axis=1)
    assert parts[0] == own
    assert parts[1:3].tolist() == ([own, 2 * own] if training else [0, 0])  # Adam: two moments
    assert graph(name, training, granularity).size.sum() == sum(
        buffer.numel() * buffer.element_size() for buffer in model.buffers()
    )


@pytest.mark.parametrize(("name", "training", "granularity"), SUMS)
def test_flops_are_those_of_torchs_counter(name: str, training: bool, granularity: str) -> None:
    model, args = made(name)
    with FlopCounterMode(display=False, custom_mapping=_formulas()) as counter:
        output = model(*args)
        if training:
            output.sum().backward()
    assert sum(kept(graph(name, training, granularity), "flops")) == counter.get_total_flops()


@pytest.mark.parametrize(("name", "granularity"), PLACES)
def test_what_is_kept_is_what_autograd_saves(name: str, granularity: str) -> None:
    assert graph(name, True, granularity).parts[3].sum() == saved_bytes(*made(name))
    assert not graph(name, False, granularity).parts[3].any()


@pytest.mark.parametrize("name", MODELS)
def test_looking_for_writes_changes_no_graph(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch traces faster when it need not look for writes; where there are none, the graph is the same."""
    fast, devices = graph(name), pt.Devices.accelerated(1)
    monkeypatch.setattr(joint, "writes", lambda graph: True)
    slow = graph.__wrapped__(name)
    assert slow is not fast
    assert pt.Workload(fast, devices).sha256 == pt.Workload(slow, devices).sha256
    assert fast.extras.nodes == slow.extras.nodes


def test_attention_counts_the_same_on_a_cpu_and_without_data() -> None:
    with torch.device("meta"):
        model, args = Gpt(), (torch.zeros(2, 16, dtype=torch.long),)
    found = graph_of(model, args, device="H100", bandwidth=50e9, training=True)
    with FlopCounterMode(display=False) as counter:
        model(*args).sum().backward()
    assert sum(kept(found, "flops")) == counter.get_total_flops()
    forward = graph_of(model, args, device="H100", bandwidth=50e9)
    assert sum(kept(forward, "flops")) == sum(kept(graph("gpt", False), "flops"))


@pytest.mark.parametrize(("name", "granularity"), PLACES)
def test_every_backward_node_is_in_the_class_of_a_forward_node(name: str, granularity: str) -> None:
    """Both also have the same layer, and the layers are modules of the model."""
    found = graph(name, True, granularity)
    modules = {path for path, _ in made(name)[0].named_modules()}
    assert set(found.layer_labels) <= modules
    forward, backward = found.color[~found.backward], found.color[found.backward]
    assert backward.min() >= 0 and set(backward) <= set(forward)
    first = {node: i for i, node in enumerate(found.ids)}
    for i in np.flatnonzero(found.backward):
        partner = str(found.ids[i]).partition("/backward")[0]
        assert found.layer[first[partner]] == found.layer[i]


def test_tied_weights_count_once_and_their_readers_name_them() -> None:
    for granularity in GRANULARITIES:
        found = graph("gpt", True, granularity)
        sharing = [i for i, names in enumerate(kept(found, "sharedParameters")) if names == ["tokens.weight"]]
        layers = [found.layer_labels[found.layer[i]] for i in sharing if not found.backward[i]]
        assert layers == ["tokens", "head"]
        assert found.parts[0][sharing[0]] == 50 * 32 * 4
        assert len({found.color[i] for i in sharing if not found.backward[i]}) == 2
        finishing = [
            found.layer_labels[found.layer[i]] for i in np.flatnonzero(found.parts[1] == 50 * 32 * 4)
        ]
        assert finishing == ["tokens"]
        others = [names for names in kept(found, "sharedParameters") if names not in ([], ["tokens.weight"])]
        assert others == []


def test_the_gradient_of_tied_weights_is_sent_once_in_the_microbatches() -> None:
    model, args = made("gpt")
    costs = {}
    for microbatches in (1, 8):
        found = graph_of(
            model,
            args,
            device="H100",
            bandwidth=1e3,
            training=True,
            granularity="block",
            microbatches=microbatches,
        )
        edge = [(found.ids[u], found.ids[v]) for u, v in found.edges].index(
            ("head/backward", "tokens/backward")
        )
        costs[microbatches] = found.cost[edge]
    assert costs == {1: pytest.approx(6400), 8: pytest.approx(800)}


def test_nodes_are_operators_modules_or_blocks() -> None:
    blocks = ["tokens", "positions", "layers.0", "layers.1", "norm", "head"]
    assert list(graph("gpt", False, "block").ids) == blocks
    assert list(graph("gpt", True, "block").ids) == [
        *blocks,
        *(f"{name}/backward" for name in reversed(blocks)),
    ]
    assert "layers.1.qkv" in graph("gpt", False, "module").ids
    assert "scaled_dot_product_attention" in graph("gpt", False, "operator").ids
    exported = kept(graph("gpt", False, "block"), "operators")
    assert exported[0] == ["embedding"] and len(exported[2]) > 5


def test_a_block_sends_one_tensor_forward_and_one_gradient_back() -> None:
    found = graph("gpt", True, "block")
    sent = {
        (found.ids[u], found.ids[v]): cost * 50e6
        for (u, v), cost in zip(found.edges, found.cost, strict=True)
    }
    tensor = 2 * 16 * 32 * 4
    assert sent["layers.0", "layers.1"] == pytest.approx(tensor)
    assert sent["layers.1/backward", "layers.0/backward"] == pytest.approx(tensor)


def test_skips_are_edges() -> None:
    found = graph("unet", False, "block")
    pairs = {(found.layer_labels[found.layer[u]], found.layer_labels[found.layer[v]]) for u, v in found.edges}
    assert {("down1.2", "widen1"), ("down2.2", "widen2")} <= pairs  # which concatenate what they read


@pytest.mark.parametrize(("name", "training", "granularity"), WAYS)
def test_a_plan_names_modules(name: str, training: bool, granularity: str) -> None:
    """Chains of stages are proven optimal, and the layers of a stage are modules of the model."""
    found = graph(name, training, granularity)
    devices = pt.Devices.accelerated(2, memory=float(found.parts.sum()))
    chain = pt.solve(found, devices)
    assert chain.gap == 0
    if granularity == "block":
        free = pt.solve(found, devices, split="free", time_limit=60)
        assert free.value <= chain.value * (1 + 1e-9)
    modules = {path for path, _ in made(name)[0].named_modules()}
    stages: dict[str, set[Any]] = {device: set() for device in chain.placement.values()}
    for node, device in chain.placement.items():
        stages[device].add(found.layer_labels[found.layer[found.position[node]]])
    assert set.union(*stages.values()) == set(found.layer_labels) <= modules


def test_a_loss_adds_its_own_operators_and_changes_no_path() -> None:
    model, args = made("gpt")
    loss = torch.nn.CrossEntropyLoss()
    found = graph_of(
        model,
        args,
        device="H100",
        bandwidth=50e9,
        training=True,
        granularity="block",
        loss=lambda output, wanted: loss(output.flatten(0, 1), wanted.flatten()),
        targets=args,
    )
    assert found.layer_labels == graph("gpt", True, "block").layer_labels
    assert found.parts[:3].sum() == graph("gpt", True, "block").parts[:3].sum()
    assert "cross_entropy_loss" in kept(found, "operators")[found.ids.index("head")]
    assert found.parts[3].sum() > graph("gpt", True, "block").parts[3].sum()


def test_measured_times_replace_estimated_ones() -> None:
    model, args = made("gpt")
    times = {"layers.0": 4.0, "layers.1/backward": 9.0, "head": 0.5}
    found = graph_of(
        model, args, device="H100", bandwidth=50e9, training=True, granularity="module", times=times
    )
    before = graph("gpt", True, "module")
    inside = {
        name: [
            i
            for i in range(len(found))
            if found.backward[i] == name.endswith("/backward")
            and f"{found.layer_labels[found.layer[i]]}.".startswith(name.partition("/")[0] + ".")
        ]
        for name in times
    }
    for name, nodes in inside.items():
        assert found.time[0][nodes].sum() == pytest.approx(times[name])
    others = np.setdiff1d(np.arange(len(found)), [i for nodes in inside.values() for i in nodes])
    assert (found.time[0][others] == before.time[0][others]).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": {"layers.7": 1.0}}, "times: 'layers.7': must be"),
        ({"times": {"layers.0": 1.0, "layers.0.up": 1.0}}, "has a time from both"),
        ({"granularity": "layer"}, "granularity = 'layer': must be"),
        ({"training": 1}, "training = 1: must be True or False"),
        ({"bandwidth": 0}, "bandwidth = 0: must be a number above 0"),
        ({"device": "H900"}, "device = 'H900': must be"),
        ({"args": torch.zeros(2)}, "args = tensor.*: must be a tuple of arguments"),
        ({"microbatches": 0}, "microbatches = 0: must be an integer of at least 1"),
        ({"loss": torch.nn.MSELoss()}, "loss: belongs to training=True"),
        ({"optimizer_bytes": -1, "training": True}, "optimizer_bytes = -1: must be"),
    ],
)
def test_what_is_not_known_is_refused(options: dict[str, Any], message: str) -> None:
    model, args = made("gpt")
    with pytest.raises(OptionError, match=message):
        graph_of(
            model,
            **{"args": args, "device": "H100", "bandwidth": 50e9, "granularity": "module", **options},
        )


@pytest.mark.filterwarnings("ignore:The tensor attributes")
def test_what_is_not_counted_is_said() -> None:
    found = graph_of(Odd(), (torch.randn(6, 4),), device="H100", bandwidth=50e9)
    assert found.extras.top["notes"] == [
        "the floating-point operations of aten.lstm.input are not known and count as 0",
        "parameter unused.weight is read by no operation and not counted",
    ]
    assert graph("gpt").extras.top["notes"] == []


@pytest.mark.parametrize(("training", "flops"), [(False, [24_576]), (True, [24_576, 24_576])])
def test_products_of_groups_are_counted(training: bool, flops: list[int]) -> None:
    """24 rows of 16 numbers, each with one matrix of 16 by 32; backward only for the matrices."""
    args = (torch.randn(24, 16, dtype=torch.bfloat16), torch.tensor([4, 8, 12, 24], dtype=torch.int32))
    found = graph_of(Grouped(), args, device="H100", bandwidth=50e9, training=training)
    assert kept(found, "flops") == flops
    assert found.extras.top["notes"] == []


@pytest.mark.parametrize("training", [False, True])
def test_shapes_that_depend_on_values_are_refused(training: bool) -> None:
    with pytest.raises(WorkloadError, match="operation nonzero: shape: depends on the values of tensors"):
        graph_of(Chosen(), (torch.randn(6, 4),), device="H100", bandwidth=50e9, training=training)


def test_a_module_that_is_called_again_becomes_another_node_of_its_layer() -> None:
    inner = torch.nn.Linear(4, 4)
    model = torch.nn.Sequential(inner, torch.nn.ReLU(), inner)
    found = graph_of(
        model, (torch.randn(6, 4),), device="H100", bandwidth=50e9, training=True, granularity="module"
    )
    assert list(found.ids) == ["0", "1", "2", "2/backward", "1/backward", "0/backward"]
    assert found.parts[0].tolist() == [80, 0, 0, 0, 0, 0]
    assert found.parts[1].tolist() == [0, 0, 0, 0, 0, 80]
    assert kept(found, "sharedParameters")[:3] == [["0.weight", "0.bias"], [], ["0.weight", "0.bias"]]


def test_several_kinds_have_times_of_their_own() -> None:
    model, args = made("cnn")
    found = graph_of(model, args, device={"gpu": "H100", "cpu": "CPU"}, bandwidth=50e9)
    assert found.kinds == ("gpu", "cpu")
    assert (found.time[1] >= found.time[0]).all() and found.time[1].sum() > found.time[0].sum()


@pytest.mark.parametrize("training", [False, True])
def test_tensors_that_are_no_buffers_are_counted_as_if_they_were(training: bool) -> None:
    """Attributes, lists of tensors and ``torch.tensor`` in the code; the model keeps its attributes."""
    model, args = Constants().double(), (torch.randn(3, 4, dtype=torch.float64),)
    found = graph_of(model, args, device="H100", bandwidth=50e9, training=training)
    assert found.size.sum() == 8 * (4 + 4 + 4 + 4 + 1)
    assert list(model.buffers()) == [] and type(model.scale) is torch.Tensor
    sent = {(found.ids[u], found.ids[v]): c for (u, v), c in zip(found.edges, found.cost, strict=True)}
    assert sent["mul_2", "add"] == 0 < sent["mul_1", "add"]
    if training:
        assert found.parts[3].sum() == saved_bytes(model, args)


def test_the_model_is_left_as_it_is() -> None:
    model, args = made("cnn")
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    graph_of(model, args, device="H100", bandwidth=50e9, training=True)
    after = model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.training
