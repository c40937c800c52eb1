"""A model as an exported program: its calls, what each waits for, and what its tensors are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from partitioner.integrations.torch.graphs.exported import exported_program
from partitioner.integrations.torch.graphs.owners import exported_owners, storage_keys, storages_written
from partitioner.integrations.torch.graphs.unlisted import without_dead
from partitioner.integrations.torch.pipelines.call_form import CallForm


@dataclass(frozen=True)
class ExportedModel:
    """An exported program whose parameters are those of the model.

    Parameters
    ----------
    module
        The program as a module of torch.
    calls
        Its nodes that call a function, by name, in order; those that only check something are left out.
    operator
        The operator that each call belongs to, as in the graph of the model.
    before
        The calls that each one waits for.
    tensor
        For each call and input that makes one tensor, a tensor without data that says whether a gradient
        flows through it.
    form
        What a call of the model takes and returns.
    """

    module: Any
    calls: Mapping[str, Any]
    operator: Mapping[str, str]
    before: Mapping[str, Set[str]]
    tensor: Mapping[str, Any]
    form: CallForm

    @property
    def inputs(self) -> list[Any]:
        """The nodes of the tensors that the model takes."""
        return [one for one in self.module.graph.find_nodes(op="placeholder") if one.name in self.tensor]

    @property
    def results(self) -> list[Any]:
        """The nodes of the tensors that the model returns."""
        return [one for one in _returned(self.module.graph) if isinstance(one, torch.fx.Node)]


def program_of(
    model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], training: bool, listed: Container[str]
) -> ExportedModel:
    """Return the exported program of a model; nothing of it is run.

    Calls of operators that are not listed and whose results nothing reads are left out.
    """
    exported = exported_program(model, args, kwargs, training)
    module = exported.module()
    owner = exported_owners(exported.graph)
    without_dead(module.graph, owner, listed)
    calls = {
        node.name: node
        for node in module.graph.nodes
        if node.op == "call_function" and (node.users or node.name in owner)
    }
    ordered = {name: kwargs[name] for name in exported.call_spec.in_spec.child(1).context}
    leaves = torch.utils._pytree.tree_leaves((args, ordered))
    return ExportedModel(
        module=module,
        calls=calls,
        operator={name: owner.get(name, name) for name in calls},
        before=_waits(calls, exported.graph),
        tensor=_Shapes(module).of(leaves),
        form=_form(exported.call_spec, leaves, _returned(module.graph)),
    )


def _form(call: Any, leaves: Iterable[Any], returned: Iterable[Any]) -> CallForm:
    results = (... if isinstance(one, torch.fx.Node) else one for one in returned)
    return CallForm(call.in_spec, tuple(map(_without_data, leaves)), call.out_spec, tuple(results))


def _without_data(value: Any) -> Any:
    return torch.empty_like(value, device="meta") if isinstance(value, torch.Tensor) else value


def _returned(graph: Any) -> list[Any]:
    """Return what a graph returns: nodes and constants."""
    return list(torch.utils._pytree.tree_leaves(graph.output_node().args[0]))


def _waits(calls: Mapping[str, Any], graph: Any) -> dict[str, set[str]]:
    """Return what each call waits for: what it reads, and the order of reads and writes of one memory."""
    found = {
        name: {one.name for one in node.all_input_nodes if one.name in calls} for name, node in calls.items()
    }
    touched: dict[int, list[str]] = defaultdict(list)
    written: dict[int, str] = {}
    for node in graph.nodes:
        if node.name not in calls:
            continue
        keys = {key for one in (node, *node.all_input_nodes) for key in storage_keys(one)}
        own = set(storages_written(node))
        found[node.name] |= {written[key] for key in keys if key in written}
        found[node.name] |= {name for key in own for name in touched[key]} - {node.name}
        written |= dict.fromkeys(own, node.name)
        for key in keys:
            touched[key].append(node.name)
    return found


class _Shapes(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs a program without data and keeps what each node makes."""

    def of(self, leaves: Iterable[Any]) -> dict[str, Any]:
        """Return a tensor of the device ``"meta"`` for each node that makes one, for a graph's inputs."""
        self.found: dict[str, Any] = {}
        self.known: dict[Any, Any] = {}
        with FakeTensorMode(allow_non_fake_inputs=True) as self.mode, torch.enable_grad():
            given = [self.mode.from_tensor(one) if isinstance(one, torch.Tensor) else one for one in leaves]
            self.run(*given, enable_io_processing=False)
        return self.found

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Return a parameter or buffer without its data, so that a run changes nothing of the model."""
        found = super().get_attr(target, args, kwargs)
        if isinstance(found, torch.Tensor):
            return self.known.setdefault(target, self.mode.from_tensor(found))
        return found

    def run_node(self, n: Any) -> Any:
        """Run a node; checks of the inputs are left out."""
        if n.op == "call_module":
            return None
        made = super().run_node(n)
        if isinstance(made, torch.Tensor):
            flag = made.requires_grad
            self.found[n.name] = torch.empty(made.shape, dtype=made.dtype, device="meta", requires_grad=flag)
        return made
