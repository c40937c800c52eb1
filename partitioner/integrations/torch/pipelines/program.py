"""A model as an exported program: its calls, what each waits for, and what its tensors are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from partitioner.base.errors import OptionError, shown
from partitioner.integrations.torch.graphs.exported import exported_program
from partitioner.integrations.torch.graphs.owners import exported_owners, storage_keys, storages_written
from partitioner.integrations.torch.graphs.unlisted import without_dead


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


@dataclass(frozen=True, eq=False)
class CallForm:
    """The form of the call that was captured; its tensors and constants lie in any lists, tuples and dicts.

    Parameters
    ----------
    given
        The structure of the arguments: of a tuple, and a dict of those by name.
    leaves
        For each tensor and constant of the arguments a tensor without data, or the constant.
    returned
        The structure of what the model returns.
    results
        For each tensor that it returns ``...``, and the constants among them.
    """

    given: Any
    leaves: tuple[Any, ...]
    returned: Any
    results: tuple[Any, ...]

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any], count: int) -> list[tuple[Any, ...]]:
        """Return the tensors of each of `count` microbatches, for the arguments of a whole batch.

        A tensor is cut along its first dimension. One that has the shape that it has in a microbatch, such
        as a mask, is given to all of them.

        Raises
        ------
        OptionError
            If the arguments have another form than those that were captured.
        """
        names = self.given.child(1).context
        if {*kwargs} != {*names}:
            raise OptionError(
                f"kwargs = {shown(sorted(kwargs))}: must be {shown(sorted(names))}, as captured"
            )
        found, form = pytree.tree_flatten((tuple(args), {name: kwargs[name] for name in names}))
        if form != self.given:
            rule = f"must have the {self.given.num_leaves} values of the call that was captured"
            raise OptionError(f"batch with {len(found)} values: {rule}, in its structure")
        cut = [self._cut(number, value, count) for number, value in enumerate(found)]
        return list(zip(*(parts for parts in cut if parts), strict=True)) or [()] * count

    def _cut(self, number: int, value: Any, count: int) -> list[Any]:
        """Return a tensor's part of each microbatch; nothing of a constant, which stages have."""
        known, name = self.leaves[number], f"batch: argument {number + 1}"
        if not isinstance(known, torch.Tensor):
            if type(value) is not type(known) or value != known:
                raise OptionError(f"{name} = {shown(value)}: must be {shown(known)}, as captured")
            return []
        shape = tuple(value.shape) if isinstance(value, torch.Tensor) else None
        if shape == tuple(known.shape):
            return [value] * count
        whole = (count * known.shape[0], *known.shape[1:]) if known.ndim else ()
        if shape is None or shape != whole:
            was = f"a tensor of shape {list(shape)}" if shape is not None else shown(value)
            rule = f"must be a tensor of shape {list(whole)} for {count} microbatches"
            raise OptionError(f"{name} is {was}: {rule}, or {list(known.shape)} for all alike")
        return list(value.split(known.shape[0]))

    def result(self, tensors: Sequence[Any]) -> Any:
        """Return what the model returns, from the tensors in it."""
        made = iter(tensors)
        leaves = [next(made) if constant is ... else constant for constant in self.results]
        return pytree.tree_unflatten(leaves, self.returned)

    def merged(self, results: Sequence[tuple[Any, ...]]) -> Any:
        """Return what the model returns for a batch, from the tensors of each microbatch.

        Tensors are joined along their first dimension; those without a dimension become a vector.
        """
        columns = zip(*results, strict=True)
        return self.result([torch.cat(one) if one[0].ndim else torch.stack(one) for one in columns])
