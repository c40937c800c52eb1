"""A placed model is bit-equal to the model on any placement, and each operator runs where it is planned."""

from __future__ import annotations

import copy
import shutil
from itertools import product
from typing import Any

import pytest

import partitioner as pt

torch = pytest.importorskip("torch", reason="placing torch's models needs torch")
from partitioner.integrations.torch import graph_of, place  # noqa: E402
from partitioner.integrations.torch.placing.cuts import moved  # noqa: E402
from tests.integrations.torch.placing.models import (  # noqa: E402
    ALL,
    Keyed,
    doubled,
    gradients,
    graph,
    scattered,
    unlike,
)

pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes")
QUICK = [(name, seed) for name, seed in product(ALL, (1,))]
SLOW = [(name, seed) for name, seed in product(ALL, (0, *range(2, 8)))]


def placed(name: str, placement: Any, **options: Any) -> Any:
    model, args = doubled(name)
    return place(model, args, graph(name), placement, **options)


def check(name: str, seed: int) -> None:
    found = placed(name, scattered(graph(name), 2 + seed % 3, seed))
    model, _ = doubled(name)
    assert list(found.state_dict()) == list(model.state_dict())
    assert unlike(name, found) == []


@pytest.mark.parametrize(("name", "seed"), QUICK)
def test_a_placed_model_is_bit_equal(name: str, seed: int) -> None:
    """Output, gradients and updated buffers in 64 bits, on 2, 3 and 4 devices."""
    check(name, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), SLOW)
def test_a_placed_model_is_bit_equal_for_many_placements(name: str, seed: int) -> None:
    check(name, seed)


def check_plan(name: str, split: str, count: int) -> None:
    model, args = doubled(name)
    found = graph(name, training=True, granularity="block")
    plan = pt.solve(found, pt.Devices.accelerated(count), split=split, time_limit=2)
    module = place(model, args, found, plan)
    assert len(set(plan.placement.values())) > 1 and module.copies
    assert unlike(name, module) == []


def test_a_plan_of_a_training_graph_runs() -> None:
    """Its backward nodes follow their forward nodes."""
    check_plan("gpt", "chain", 2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "split", "count"), [*product(("gpt", "unet"), ("chain", "free"), (2, 3, 4))]
)
def test_plans_of_chains_and_free_splits_run(name: str, split: str, count: int) -> None:
    check_plan(name, split, count)


class Followed(torch.fx.Interpreter):  # type: ignore[misc, name-defined]
    """Runs a placed module, records what it copies, and where and in which order calls run.

    A copy from the device ``"meta"`` has no numbers.
    """

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.copied: list[int] = []
        self.ran: dict[str, set[str]] = {}

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if target is moved:
            self.copied.append(args[0].numel() * args[0].element_size())
            return torch.zeros_like(args[0], device=args[1]) if args[0].is_meta else moved(*args)
        return super().call_function(target, args, kwargs)

    def run_node(self, node: Any) -> Any:
        found = super().run_node(node)
        if node.op == "call_function" and "placing" not in getattr(node.target, "__module__", ""):
            leaves = torch.utils._pytree.tree_leaves(found)
            self.ran[node.name] = {one.device.type for one in leaves if isinstance(one, torch.Tensor)}
        return found


def followed(name: str, placement: dict[Any, str], where: dict[str, str]) -> Followed:
    _, args = doubled(name)
    module = placed(name, placement, devices=where)
    runner = Followed(module)
    with torch.no_grad():
        runner.run(*args)
    assert sorted(runner.copied) == sorted(one.nbytes for one in module.copies)
    return runner


SLOW_MODELS = [pytest.param(name, marks=pytest.mark.slow) for name in ALL if name not in ("cnn", "rewritten")]


@pytest.mark.parametrize("name", ["cnn", "rewritten", *SLOW_MODELS])
def test_every_operator_runs_on_its_device(name: str) -> None:
    """One device after the other is ``"meta"``: exactly the operators on it make tensors there."""
    found = graph(name)
    placement = scattered(found, 3, 7)
    names = [f"accelerator{i}" for i in range(3)]
    for chosen in names:
        runner = followed(name, placement, {one: "meta" if one == chosen else "cpu" for one in names})
        for node, fields in zip(found.ids, found.extras.nodes, strict=True):
            want = {"meta"} if placement[node] == chosen else {"cpu"}
            for operator in fields["operators"]:
                assert runner.ran[operator] in (want, set()), operator


def test_arguments_by_name_several_outputs_and_random_numbers() -> None:
    """Dropout draws the same numbers as in the model."""
    torch.manual_seed(0)
    model, args = Keyed().double(), (torch.randn(3, 4, dtype=torch.float64, requires_grad=True),)
    kwargs = {"more": {"bias": torch.randn(8, dtype=torch.float64)}}
    found = graph_of(model, args, kwargs, device="H100", bandwidth=1e9)
    for seed in range(4):
        module = place(model, args, found, scattered(found, 3, seed), kwargs=kwargs)
        outputs, inputs = [], []
        for run in (model, module):
            torch.manual_seed(5)
            outputs.append(run(*args, **kwargs))
            (outputs[-1]["found"].sum() * outputs[-1]["wide"].sum()).backward()
            inputs.append(args[0].grad)
            args[0].grad = None
        assert outputs[0]["count"] == outputs[1]["count"] == 2
        assert torch.equal(outputs[0]["found"], outputs[1]["found"])
        assert torch.equal(*inputs)
        assert all(
            torch.equal(a.grad, b.grad) for a, b in zip(model.parameters(), module.parameters(), strict=True)
        )
        model.zero_grad()


def test_a_model_with_its_loss() -> None:
    """The tensors have the names that they have in the model alone."""
    model, args = doubled("experts")
    options: dict[str, Any] = {"loss": torch.nn.functional.mse_loss, "targets": args}
    found = graph_of(model, args, device="H100", bandwidth=1e9, training=True, **options)
    module = place(model, args, found, scattered(found, 3, 1), **options)
    module(*args, *args).backward()
    options["loss"](model(*args), *args).backward()
    assert list(module.state_dict()) == list(model.state_dict())
    for path, one in model.named_parameters():
        assert torch.equal(module.get_parameter(path).grad, one.grad)


def test_second_derivatives_are_refused() -> None:
    model, args = doubled("experts")
    module = place(model, args, graph("experts"), scattered(graph("experts"), 3, 1))
    first = torch.autograd.grad(module(*args).square().sum(), list(module.parameters()), create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        sum(one.square().sum() for one in first).backward()


def test_tied_weights_stay_one_parameter_and_the_model_stays_as_it_is() -> None:
    model, args = doubled("gpt")
    before = {path: tensor.clone() for path, tensor in model.state_dict().items()}
    module = place(model, args, graph("gpt"), scattered(graph("gpt"), 2, 3))
    assert module.head.weight is module.tokens.weight is not model.head.weight
    assert len(list(module.parameters())) == len(list(model.parameters()))
    unlike("gpt", module)
    torch.optim.SGD(module.parameters(), 0.1).step()
    assert all(torch.equal(before[path], tensor) for path, tensor in model.state_dict().items())
    module.load_state_dict(model.state_dict())
    assert all(torch.equal(before[path], tensor) for path, tensor in module.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_placed_model_is_compiled(backend: str) -> None:
    module = placed("reread", scattered(graph("reread"), 3, 5))
    assert module.copies
    assert unlike("reread", module, torch.compile(module, backend=backend)) == []


@pytest.mark.slow
def test_a_placed_model_is_compiled_by_inductor() -> None:
    """Fused kernels add in another order, so that the last digits may differ."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("inductor needs a C++ compiler, and there is none on the path")
    model, args = doubled("constants")
    module = placed("constants", scattered(graph("constants"), 2, 5))
    assert any(one.kind == "operator" for one in module.copies)
    want, left = gradients(model, args)
    output, found = gradients(module, args, torch.compile(module, backend="inductor"))
    assert torch.allclose(output, want, rtol=1e-12, atol=1e-12)
    assert all(torch.allclose(found[path], left[path], rtol=1e-12, atol=1e-12) for path in left)


def test_copies_from_and_to_cuda() -> None:
    """Copies on streams of their own arrive before they are read; only kernels' last digits differ."""
    if not torch.cuda.is_available():
        pytest.skip("copies on CUDA's streams need a CUDA device, and torch sees none")
    model, args = doubled("unet")
    want, left = gradients(copy.deepcopy(model), args)
    for where in ("cpu", "cuda:0"):
        devices = {"accelerator0": "cuda:0", "accelerator1": where, "accelerator2": "cuda:0"}
        module = placed("unet", scattered(graph("unet"), 3, 2), devices=devices)
        output, found = gradients(module, args)
        assert torch.allclose(output.cpu(), want, rtol=1e-9, atol=1e-9)
        assert all(torch.allclose(found[path].cpu(), left[path], rtol=1e-9, atol=1e-9) for path in left)
