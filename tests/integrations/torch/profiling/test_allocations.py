"""The bytes of operators are those that the allocator gave out, and permanent memory is what torch counts."""

from __future__ import annotations

from typing import Any

import pytest

from partitioner.base.errors import WorkloadError
from partitioner.integrations.torch import graph_of, layer_memory, profile

torch = pytest.importorskip("torch", reason="memory of torch's models needs torch")
from torch.distributed._tools.mem_tracker import MemTracker  # noqa: E402

from partitioner.integrations.torch.graphs.capture import seen_and_captured  # noqa: E402
from partitioner.integrations.torch.profiling.allocations import allocations  # noqa: E402
from partitioner.integrations.torch.profiling.runnable import RunnableGraph  # noqa: E402
from tests.integrations.torch.models import made  # noqa: E402

QUICK: dict[str, Any] = {"bandwidth": 1e9, "warm_up": 0, "tolerance": 1e9}
WAYS = [("cnn", False), ("experts", False), ("cnn", True), ("experts", True)]
REST = [pytest.param(name, way, marks=pytest.mark.slow) for name in ("gpt", "unet") for way in (False, True)]
LONG = [pytest.param(name, marks=pytest.mark.slow) for name in ("gpt", "cnn")]


def counted(name: str, training: bool) -> tuple[Any, Any]:
    """The captured operations of a model, and the bytes that each has allocated."""
    model, args = made(name)
    seen, capture = seen_and_captured(model, args, {}, training, None, ())
    return capture, allocations(RunnableGraph(seen, args, {}, "cpu"), "cpu", lambda: None)


@pytest.mark.parametrize(("name", "training"), [*WAYS, *REST])
def test_what_an_operator_leaves_is_its_output(name: str, training: bool) -> None:
    """Views leave nothing; a result that no one reads is left until the operator has ended."""
    capture, found = counted(name, training)
    known = {source.storage.key for source in capture.sources.values()}
    for op in capture.operations:
        new = {memory.key: memory.nbytes for memory in op.outputs if memory.key not in known}
        known |= new.keys()
        assert found[op.name].left == sum(new.values()), op.name
        assert found[op.name].peak >= found[op.name].left


def test_what_an_operator_needs_only_for_a_while_is_in_its_peak() -> None:
    """The convolutions of this machine's library allocate more than their output; sums do not."""
    capture, found = counted("cnn", False)
    extra = {op.name: found[op.name].peak - found[op.name].left for op in capture.operations}
    kinds = {op.name: op.target for op in capture.operations}
    assert any(nbytes > 0 for name, nbytes in extra.items() if "conv" in kinds[name])
    assert all(not nbytes for name, nbytes in extra.items() if kinds[name] == "aten.add.Tensor")


def tracked(name: str) -> tuple[dict[str, int], Any]:
    """What torch's own tracker counts at the end of the forward pass of the second step."""
    model, args = made(name)
    tracker = MemTracker()
    tracker.track_external(model, *args)
    with tracker:
        for _ in range(2):
            output = model(*args)
            snapshot = tracker.get_tracker_snapshot("current")
            nbytes = sum(each.nbytes for each in args) - output.nbytes
            output.sum().backward()
            del output
            tracker.reset_mod_stats()
    (found,) = snapshot.values()
    return {getattr(kind, "value", kind): count for kind, count in found.items()}, nbytes


@pytest.mark.parametrize("name", ["unet", "experts", *LONG])
def test_permanent_memory_is_what_torch_counts_when_the_forward_pass_ends(name: str) -> None:
    """To the byte, from the second step on, where parameters, gradients and outputs are there.

    The tracker lists the model's input apart, and the model's output among what is kept.
    """
    found = layer_memory(profile(*made(name), granularity="module", **QUICK).graph)
    counts, input_without_output = tracked(name)
    expected = counts["Parameter"] + counts["Gradient"] + counts["Activation"] + input_without_output
    assert sum(layer.permanent for layer in found.values()) == expected


def test_the_layers_of_a_model_by_hand() -> None:
    """Two linear layers with a ReLU in place: 4 -> 8 -> 2 for three samples of four bytes a number."""
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 2))
    args = (torch.randn(3, 4),)
    weights = {"0": (4 * 8 + 8) * 4.0, "1": 0.0, "2": (8 * 2 + 2) * 4.0}
    hidden, last = 3 * 8 * 4.0, 3 * 2 * 4.0
    plain = layer_memory(profile(model, args, training=False, granularity="module", **QUICK).graph)
    assert {name: each.permanent for name, each in plain.items()} == weights
    assert plain["0"].temporary >= hidden
    assert plain["1"].temporary == 0  # it writes in place: (b) is 0
    assert plain["2"].temporary >= last
    found = layer_memory(profile(model, args, granularity="module", **QUICK).graph)
    kept = {"0": 3 * 4 * 4.0, "1": hidden, "2": 0.0}  # the input; the ReLU's result is kept by its class
    assert {name: each.permanent - 2 * weights[name] for name, each in found.items()} == kept


def test_a_graph_that_is_not_measured_is_refused() -> None:
    graph = graph_of(*made("experts"), device="H100", bandwidth=1e9)
    with pytest.raises(WorkloadError, match=r"outputBytes: must be measured, as profile\(\) does it"):
        layer_memory(graph)
