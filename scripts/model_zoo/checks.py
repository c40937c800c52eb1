"""What is asked of each model, one function for each column of the table; each raises what went wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import partitioner as pt
from model_zoo.consumers import read_back
from model_zoo.models import Call, loss
from partitioner.integrations.torch import graph_of, place, profile
from partitioner.integrations.torch.pipelines import in_processes, run_pipeline, stages_of
from partitioner.integrations.torch.verification import compare_with_run, measure_pipeline

MICROBATCHES = 2
TOLERANCE = 1e-5
COPIES: dict[str, Any] = {"tied": "copied"}
SPEED: dict[str, Any] = {"device": "A100-40", "bandwidth": 1e9, "efficiency": 0.01}


class Zoo:
    """A model with what the steps make of it, in the order of the table.

    Parameters
    ----------
    call
        The model and the arguments of a call.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.target = torch.rand(2) + 0.5
        self.scored: Any = {"loss": loss, "targets": (self.target,)}

    def inference(self) -> str:
        """Make the graph of the forward pass."""
        call = self.call
        self.forward = graph_of(call.model, call.args, call.kwargs, **SPEED)
        return f"{len(self.forward)} nodes"

    def training(self) -> str:
        """Make the graph of both passes."""
        call = self.call
        self.both = graph_of(call.model, call.args, call.kwargs, **SPEED, training=True, **self.scored)
        return f"{len(self.both)} nodes"

    def solve(self) -> str:
        """Plan both graphs for two and four devices."""
        self.plans = {}
        for graph in (self.forward, self.both):
            for count in (2, 4):
                devices, copies = pt.Devices.accelerated(count), COPIES if graph is self.both else {}
                plan = pt.solve(graph, devices, split="chain", time_limit=3, **copies)
                self.plans[graph is self.both, count] = plan
        return ", ".join(f"{plan.gap:.0%}" for plan in self.plans.values())

    def place(self) -> str:
        """Run a step of training with its operators on the devices of a plan."""
        call = self.call
        placed = place(
            call.model, call.args, self.both, self.plans[True, 2], kwargs=call.kwargs, **self.scored
        )
        placed(*call.args, self.target, **call.kwargs).backward()
        expected, _ = self._whole((call.args,), (call.kwargs,), (self.target,))
        return _compared({path: one.grad for path, one in placed.named_parameters()}, expected)

    def pipeline(self) -> str:
        """Train a step in two processes under 1F1B."""
        call, model = self.call, self.call.model
        stages = stages_of(model, call.args, self.both, self.plans[True, 2], kwargs=call.kwargs)
        torch.manual_seed(1)
        parts = [self._other() for _ in range(MICROBATCHES)]
        targets = torch.rand(2 * MICROBATCHES) + 0.5
        args = tuple(_batch([part[0][i] for part in parts]) for i in range(len(call.args)))
        kwargs = {name: _batch([part[1][name] for part in parts]) for name in call.kwargs}

        def work(_: int) -> Any:
            run_pipeline(
                stages, args, targets, microbatches=MICROBATCHES, kwargs=kwargs, loss=loss, schedule="1f1b"
            )
            return {path: one.grad for path, one in model.named_parameters() if one.grad is not None}

        found = [one for one in in_processes(work, len(stages.devices), seconds=120) if one]
        grads = {path: grad for one in found for path, grad in one.items()}
        args_of, kwargs_of = ([part[i] for part in parts] for i in range(2))
        expected, _ = self._whole(args_of, kwargs_of, targets.chunk(MICROBATCHES))
        shares = [len(stage.operators) for stage in stages.modules]
        return f"{_compared(grads, expected)}, {shares} operators"

    def verify(self) -> str:
        """Measure the model, plan what was measured, run the plan and compare."""
        call = self.call
        workload = profile(
            call.model, call.args, call.kwargs, bandwidth=1e9, training=True, **self.scored, time_limit=0.5
        )
        devices = pt.Devices.accelerated(2)
        workload = pt.Workload(workload.graph, devices)
        plan = pt.solve(workload.graph, devices, split="chain", time_limit=3, **COPIES)
        stages = stages_of(call.model, call.args, workload.graph, plan, kwargs=call.kwargs)
        run = measure_pipeline(
            stages,
            call.args,
            kwargs=call.kwargs,
            microbatches=(1, 2),
            rounds=1,
            loss=loss,
            target=self.target,
            seconds=120,
        )
        compare_with_run(workload, plan, run).summary()
        return "ran"

    def exports(self) -> str:
        """Write the plan of blocks for each tool that can express one, and read it with the tool."""
        call = self.call
        graph = graph_of(call.model, call.args, call.kwargs, **SPEED, granularity="block")
        return ", ".join(read_back(call, graph)) or "none"

    def _other(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return arguments of other values."""

        def changed(value: Any) -> Any:
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                return torch.randn_like(value)
            return value.roll(1, 0) if isinstance(value, torch.Tensor) else value

        found: tuple[tuple[Any, ...], dict[str, Any]]
        found = torch.utils._pytree.tree_map(changed, (self.call.args, dict(self.call.kwargs)))
        return found

    def _whole(self, args: Any, kwargs: Any, targets: Any) -> tuple[dict[str, Any], list[float]]:
        """Return the gradients of the mean loss of microbatches, and the losses, of the whole model."""
        model, losses = self.call.model, []
        model.zero_grad()
        for one, named, target in zip(args, kwargs, targets, strict=True):
            found = loss(model(*one, **named), target) / len(targets)
            found.backward()
            losses.append(float(found))
        grads = {path: one.grad for path, one in model.named_parameters()}
        model.zero_grad()
        return grads, losses


STEPS: dict[str, Callable[[Zoo], str]] = {
    name: getattr(Zoo, name)
    for name in ("inference", "training", "solve", "place", "pipeline", "verify", "exports")
}


def _batch(parts: list[Any]) -> Any:
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else parts[0]


def _compared(found: dict[str, Any], expected: dict[str, Any]) -> str:
    """Return the largest difference of gradients, relative to the largest gradient of the parameter."""
    wanted = {path: grad for path, grad in expected.items() if grad is not None}
    missing = [path for path in wanted if found.get(path) is None and bool(wanted[path].any())]
    if missing:
        raise AssertionError(f"{len(missing)} parameters have no gradient, such as {missing[0]}")
    worst = 0.0
    for path, grad in wanted.items():
        if found.get(path) is not None:
            scale = float(grad.abs().max()) or 1.0
            error = float((found[path] - grad).abs().max()) / max(scale, 1e-3)
            if error > TOLERANCE:
                raise AssertionError(f"the gradient of {path} differs by {error:.1e}")
            worst = max(worst, error)
    return f"{worst:.0e}"
