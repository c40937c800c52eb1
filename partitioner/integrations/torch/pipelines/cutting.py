"""The cutting of an exported program into stages, with tensors carried through the stages between."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import torch

from partitioner.integrations.torch.pipelines.order import DeviceRun
from partitioner.integrations.torch.pipelines.program import ExportedModel
from partitioner.integrations.torch.pipelines.stage_module import StageModule


def cut(
    program: ExportedModel, runs: Sequence[DeviceRun], recompute: bool = False, copied: Set[str] = frozenset()
) -> tuple[StageModule, ...]:
    """Return the runs as stages; the operators of a run are names of calls of the program.

    A stage takes what any stage from it on reads of what was made before it, and returns the same of the next
    one. The last stage returns what the model returns. Calls that are `copied` are in no run: each stage has
    those that it reads, and is given the inputs of the model that it reads.
    """
    last = len(runs) - 1
    whole = [
        run._replace(operators=_with_copies(program, run, copied, program.results if i == last else ()))
        for i, run in enumerate(runs)
    ]
    carried = [_carried(program, whole, number, copied) for number in range(1, len(runs))]
    taken, returned = [program.inputs, *carried], [*carried, program.results]
    given = [_inputs_read(program, run, i == last) if copied and i else [] for i, run in enumerate(whole)]
    return tuple(
        StageModule(
            body=_body(program, run, (*taken[i], *given[i]), returned[i]),
            index=i,
            device=run.device,
            operators=run.operators,
            inputs=tuple(program.tensor[node.name] for node in taken[i]),
            outputs=tuple(program.tensor[node.name] for node in returned[i]),
            recompute=recompute,
            given=tuple(node.name for node in given[i]),
        )
        for i, run in enumerate(whole)
    )


def _with_copies(
    program: ExportedModel, run: DeviceRun, copied: Set[str], results: Sequence[Any]
) -> tuple[str, ...]:
    """Return the operators of a run after the copied ones that they or the results read."""
    found: set[str] = set()
    left = [*results, *(node for name in run.operators for node in program.calls[name].all_input_nodes)]
    while copied and left:
        node = left.pop()
        if node.name in copied and node.name not in found:
            found.add(node.name)
            left += node.all_input_nodes
    return (*(name for name in program.calls if name in found), *run.operators)


def _carried(program: ExportedModel, runs: Sequence[DeviceRun], number: int, copied: Set[str]) -> list[Any]:
    """Return the nodes of the tensors that pass from before a stage to it or to a later one."""
    early = {name for run in runs[:number] for name in run.operators} - copied
    if not copied:
        early |= {node.name for node in program.inputs}
    late = [name for run in runs[number:] for name in run.operators]
    read = [node for name in late for node in program.calls[name].all_input_nodes]
    return [node for node in dict.fromkeys((*read, *program.results)) if node.name in early]


def _inputs_read(program: ExportedModel, run: DeviceRun, last: bool) -> list[Any]:
    """Return the inputs of the model that a stage reads; the last one returns the results."""
    read = {node for name in run.operators for node in program.calls[name].all_input_nodes}
    return [node for node in program.inputs if node in read or (last and node in program.results)]


def _body(program: ExportedModel, run: DeviceRun, given: Sequence[Any], returned: Sequence[Any]) -> Any:
    """Return a module with the calls of a run and the parameters that they read."""
    graph = torch.fx.Graph()
    made = {node.name: graph.placeholder(node.name) for node in given}

    def value(node: Any) -> Any:
        if node.name not in made and node.op == "get_attr":
            made[node.name] = graph.get_attr(node.target)
        return made[node.name]

    for name in run.operators:
        made[name] = graph.node_copy(program.calls[name], value)
    graph.output(tuple(map(value, returned)))
    return torch.fx.GraphModule(program.module, graph)
