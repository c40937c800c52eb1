"""Stages run one after the other compute what the model does, bit for bit, wherever the model is cut."""

from __future__ import annotations

import random
from typing import Any

import pytest

from partitioner import OptionError, WorkloadError

torch = pytest.importorskip("torch", reason="stages of torch's models need torch")
from partitioner.integrations.torch import graph_of  # noqa: E402
from partitioner.integrations.torch.pipelines.stages import stages_of  # noqa: E402
from tests.integrations.torch.pipelines.models import captured, cut_at, of_one_colour  # noqa: E402

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("unet", "experts", "lstm")]
NAMES = ["cnn", "pair", "constants", *SLOW]


def one_after_the_other(stages: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The output of the last stage, with all tensors checked against what the stage says of them."""
    for stage in stages.modules:
        given = [(tuple(one.shape), one.dtype) for one in args]
        assert given == [(tuple(one.shape), one.dtype) for one in stage.inputs]
        found = stage(*args)
        args = found if isinstance(found, tuple) else (found,)
        assert [one.requires_grad for one in args] == [one.requires_grad for one in stage.outputs]
        assert all(one.is_contiguous() for one in args)
    return args


def tensors(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


@pytest.mark.parametrize("name", NAMES)
def test_random_placements_compute_the_same(name: str) -> None:
    """Outputs and gradients, with as many stages as a random placement on two devices gives."""
    model, args, graph = captured(name, training=True)
    twin, _, _ = captured(name, training=True)
    choose = random.Random(name)
    for _ in range(3):
        placement = {node: f"accelerator{choose.randrange(2)}" for node in graph.ids}
        stages = stages_of(model, args, graph, of_one_colour(graph, placement))
        assert len(stages.modules) > 2
        assert set(stages.rank_of) == {0, 1}
        found, expected = one_after_the_other(stages, args), tensors(twin(*args))
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
        for each, result in ((model, found), (twin, expected)):
            each.zero_grad()
            sum((one**2).sum() for one in result).backward()
        for one, other in zip(model.parameters(), twin.parameters(), strict=True):
            assert torch.equal(one.grad, other.grad)
        for one, other in zip(model.buffers(), twin.buffers(), strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("name", NAMES)
def test_each_parameter_is_in_the_stage_that_reads_it(name: str) -> None:
    model, args, graph = captured(name, training=True)
    stages = stages_of(model, args, graph, cut_at(graph, (0.3, 0.6), (0, 1, 0)))
    held = [id(one) for stage in stages.modules for one in stage.parameters()]
    assert sorted(held) == sorted(id(one) for one in model.parameters())


def test_a_chain_has_a_stage_for_each_device_and_a_free_split_more() -> None:
    model, args, graph = captured("unet", training=False)
    chain = stages_of(model, args, graph, cut_at(graph, (0.3, 0.6), (2, 0, 1)))
    assert chain.devices == ("accelerator2", "accelerator0", "accelerator1")
    assert chain.rank_of == (0, 1, 2)
    free = stages_of(model, args, graph, cut_at(graph, (0.3, 0.6), (0, 1, 0)))
    assert free.rank_of == (0, 1, 0)
    assert [one.index for one in free.of_rank(0)] == [0, 2]


def test_a_skipped_tensor_is_carried_through_the_stages_between() -> None:
    model, args, graph = captured("unet", training=False)
    stages = stages_of(model, args, graph, cut_at(graph, (0.3, 0.5, 0.6), (0, 1, 2, 3)))
    middle = stages.modules[1]
    carried = set(middle.body.graph.output_node().all_input_nodes) & set(
        middle.body.graph.find_nodes(op="placeholder")
    )
    assert carried


@pytest.mark.parametrize("training", [True, False])
def test_tied_weights_apart_are_copied(training: bool) -> None:
    """For training the stages name them with their devices, since gradients of copies are added up."""
    model, args, graph = captured("gpt", training=training)
    stages = stages_of(model, args, graph, cut_at(graph, (0.5,), (0, 1)))
    tied = [(tuple(one.shape), devices) for one, devices in stages.tied]
    shape = tuple(model.get_parameter("tokens.weight").shape)
    assert tied == ([(shape, ("accelerator0", "accelerator1"))] if training else [])
    assert torch.equal(one_after_the_other(stages, args)[0], model(*args))


def test_what_does_not_fit_is_refused() -> None:
    model, args, graph = captured("lstm", training=False)
    _, _, other = captured("experts", training=False)
    placement = cut_at(other, (), (0,))
    with pytest.raises(WorkloadError, match=r"operator lstm.*: is in no node of the graph"):
        stages_of(model, args, other, placement)
    with pytest.raises(WorkloadError, match="is not placed on any device"):
        stages_of(model, args, graph, {graph.ids[0]: "accelerator0"})
    with pytest.raises(OptionError, match="args"):
        stages_of(model, 3, graph, cut_at(graph, (), (0,)))  # type: ignore[arg-type]


def test_nodes_of_one_class_apart_are_refused() -> None:
    """Passes of one operator, operators that write into one tensor, readers of a buffer that is updated."""
    model, args, graph = captured("lstm", training=True)
    apart = cut_at(graph, (), (0,)) | {"linear/backward": "accelerator1"}
    message = (
        "node 'linear/backward': accelerator1: must be on accelerator0 with node 'linear': they are passes of"
    )
    with pytest.raises(WorkloadError, match=message):
        stages_of(model, args, graph, apart)
    model, args, graph = captured("cnn", training=False)
    apart = cut_at(graph, (), (0,)) | {"relu_": "accelerator1"}
    with pytest.raises(WorkloadError, match="node 'relu_': accelerator1: must be on accelerator0 with node"):
        stages_of(model, args, graph, apart)
    model, args = Remembering(), (torch.ones(2, 4),)
    graph = graph_of(model, args, device="CPU", dtype="float32", bandwidth=1e9)
    apart = cut_at(graph, (), (0,)) | {graph.ids[-1]: "accelerator1"}
    with pytest.raises(WorkloadError, match="or use memory that one of them writes into"):
        stages_of(model, args, graph, apart)


class Remembering(torch.nn.Module):  # type: ignore[misc, name-defined]
    """The mean of what it saw before, which it reads before it is updated."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        found = x - self.mean
        self.mean.add_(x.mean(0))
        return found


def test_a_model_that_kept_a_value_of_an_earlier_call_is_refused() -> None:
    """The operator that made the value is in the graph, and no longer in the model."""

    class Cached(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.outer = torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)
            self.rows: dict[str, Any] = {}

        def forward(self, x: Any) -> Any:
            row = self.rows["row"] if "row" in self.rows else self.inner.weight[0].exp()
            return self.outer(torch.relu(self.inner(x)) + row)

    model, args = Cached(), (torch.ones(2, 4),)
    given: dict[str, Any] = {"loss": lambda found, _: found.sum(), "targets": (torch.ones(2),)}
    graph = graph_of(model, args, device="CPU", bandwidth=1e9, training=True, **given)
    placement = cut_at(graph, (0.5,), (0, 1))
    model.rows["row"] = torch.ones(4)
    with pytest.raises(WorkloadError, match=r"^operator exp: .*: is not computed any more.*has not run$"):
        stages_of(model, args, graph, placement)
