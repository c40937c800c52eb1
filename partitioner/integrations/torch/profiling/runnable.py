"""A captured graph that is run operator by operator on tensors with data; the model's own are not changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch

from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.graphs.operations import in_place_argument
from partitioner.integrations.torch.graphs.values import as_captured, storage_of, tensors_of
from partitioner.integrations.torch.profiling.recurrent import as_trained

Call = Callable[[Callable[..., Any], Any, Any], Any]


class RunnableGraph:
    """The operators of a captured graph in their order, with what each run starts from.

    Parameters
    ----------
    seen
        The captured graph with the model's tensors.
    args, kwargs
        The arguments of the call that was captured.
    device
        The device that all tensors are on.
    accumulate
        Whether the operators that make gradients of parameters also add them to a sum over all runs, as a
        pipeline does with those of the microbatches of a batch.

    Attributes
    ----------
    names
        The names of the operators, in the order in which they run.
    forms
        What each operator does: its function, the shapes, strides and types of the tensors that it reads, and
        its other arguments. Equal layers of a model have operators of equal forms.
    """

    def __init__(
        self,
        seen: Seen,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        device: Any,
        accumulate: bool = False,
    ) -> None:
        self._device = torch.device(device)
        self._placeholders = list(seen.graph.find_nodes(op="placeholder"))
        self._calls = [node for node in seen.graph.nodes if node.op == "call_function"]
        self._constants = [node for node in seen.graph.nodes if node.op == "get_attr"]
        self._changed = self._may_change(seen)
        self._given = self._real(seen, torch.utils._pytree.tree_leaves((args, dict(kwargs))))
        self._dead = self._last_uses(seen.graph)
        self._target = {node.name: as_trained(node) for node in self._calls}
        if accumulate:
            self._target |= self._with_sums(seen.gradients)
        self.names = tuple(node.name for node in self._calls)
        summed = set(seen.gradients) if accumulate else set()
        self.forms = tuple(_form(node, node.name in summed) for node in self._calls)

    def run(self, call: Call, check: Callable[[], None]) -> None:
        """Run all operators once, each by `call`; `check` is called before each and may raise."""
        with torch.no_grad(), self._own_chance():
            values = self._start()
            for node in self._calls:
                check()
                self._step(node, values, call)

    def _step(self, node: Any, values: dict[str, Any], call: Call) -> None:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: values[one.name])
        values[node.name] = as_captured(node, call(self._target[node.name], args, kwargs))
        del args, kwargs
        for name in self._dead.get(node.name, ()):
            del values[name]

    def _start(self) -> dict[str, Any]:
        """Return the values of what no operator makes: copies of those that an operator may write into."""
        copied = {
            name: value.clone() if name in self._changed and isinstance(value, torch.Tensor) else value
            for name, value in self._given.items()
        }
        constants = {node.name: getattr(node.graph.owning_module, node.target) for node in self._constants}
        return copied | constants

    def _real(self, seen: Seen, leaves: list[Any]) -> dict[str, Any]:
        arguments = iter(leaves)
        found = {}
        for node in self._placeholders:
            kind, path = seen.home[node.name]
            if kind == "gradient":
                found[node.name] = self._full(node, 1)
                continue
            value = next(arguments) if kind == "input" else seen.tensors[path]
            found[node.name] = value.detach() if isinstance(value, torch.Tensor) else value
        return found

    def _may_change(self, seen: Seen) -> set[str]:
        """Return the names of all that is no parameter, and of the parameters that an operator writes into.

        That batch normalisation writes into its buffers is not in its operator's signature.
        """
        targets = [in_place_argument(node) for node in self._calls]
        written = {_memory(target) for target in targets if target is not None and tensors_of(target)}
        return {
            node.name
            for node in self._placeholders
            if seen.home[node.name][0] != "parameter" or _memory(node) in written
        }

    def _full(self, node: Any, number: int) -> Any:
        """Return a tensor of one number in the layout that was captured of a node."""
        (shape,) = tensors_of(node)
        made = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype, device=self._device)
        return made.fill_(number)

    def _with_sums(self, gradients: Mapping[str, str]) -> dict[str, Callable[..., Any]]:
        """Return for each operator that makes a gradient a call that also adds it to a sum."""
        found: dict[str, Callable[..., Any]] = {}
        for node in self._calls:
            if node.name in gradients:
                found[node.name] = partial(_added, self._target[node.name], self._full(node, 0))
        return found

    def _last_uses(self, graph: Any) -> dict[str, list[str]]:
        """Return for each operator the values that no later one reads; what the graph returns is kept."""
        last: dict[str, str] = {}
        for node in self._calls:
            last |= dict.fromkeys([*(one.name for one in node.all_input_nodes), node.name], node.name)
        for node in (*graph.output_node().all_input_nodes, *self._placeholders):
            last.pop(node.name, None)
        dead: dict[str, list[str]] = {}
        for name, reader in last.items():
            dead.setdefault(reader, []).append(name)
        return dead

    @contextlib.contextmanager
    def _own_chance(self) -> Iterator[None]:
        """Give the state of the random numbers back at the end."""
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            yield


def _added(target: Callable[..., Any], total: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the gradient that a call makes, once it is added to the sum."""
    gradient = target(*args, **kwargs)
    total.add_(gradient)
    return gradient


def _form(node: Any, summed: bool) -> str:
    """Return a text that is equal for calls that do the same to tensors of equal shapes."""

    def read(one: Any) -> str:
        return str([(tuple(each.shape), each.stride(), each.dtype) for each in tensors_of(one)])

    return f"{node.target} {torch.fx.node.map_arg((node.args, node.kwargs), read)} {summed}"


def _memory(node: Any) -> int:
    """Return what tells the memory of a node's tensor from other memory."""
    return storage_of(tensors_of(node)[0], node.name).key
