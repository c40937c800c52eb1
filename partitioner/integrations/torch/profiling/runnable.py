"""A captured graph that is run operator by operator on tensors with data; the model's own are not changed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from partitioner.integrations.torch.graphs.capture import Seen
from partitioner.integrations.torch.graphs.operations import in_place_argument
from partitioner.integrations.torch.graphs.values import storage_of, tensors_of

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

    Attributes
    ----------
    names
        The names of the operators, in the order in which they run.
    """

    def __init__(self, seen: Seen, args: tuple[Any, ...], kwargs: Mapping[str, Any], device: Any) -> None:
        self._device = torch.device(device)
        self._placeholders = list(seen.graph.find_nodes(op="placeholder"))
        self._calls = [node for node in seen.graph.nodes if node.op == "call_function"]
        self._constants = [node for node in seen.graph.nodes if node.op == "get_attr"]
        self._changed = self._may_change(seen)
        self._given = self._real(seen, torch.utils._pytree.tree_leaves((args, dict(kwargs))))
        self._dead = self._last_uses(seen.graph)
        self.names = tuple(node.name for node in self._calls)

    def run(self, call: Call, check: Callable[[], None]) -> None:
        """Run all operators once, each by `call`; `check` is called before each and may raise."""
        with torch.no_grad(), self._own_chance():
            values = self._start()
            for node in self._calls:
                check()
                self._step(node, values, call)

    def _step(self, node: Any, values: dict[str, Any], call: Call) -> None:
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda one: values[one.name])
        values[node.name] = call(node.target, args, kwargs)
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
                found[node.name] = self._ones(node)
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

    def _ones(self, node: Any) -> Any:
        """Return the gradient of an output, in the layout that was captured."""
        (shape,) = tensors_of(node)
        made = torch.empty_strided(shape.shape, shape.stride(), dtype=shape.dtype, device=self._device)
        return made.fill_(1)

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


def _memory(node: Any) -> int:
    """Return what tells the memory of a node's tensor from other memory."""
    return storage_of(tensors_of(node)[0], node.name).key
