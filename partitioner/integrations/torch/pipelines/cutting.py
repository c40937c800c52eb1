"""The cutting of an exported program into stages, with tensors carried through the stages between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from partitioner.integrations.torch.pipelines.order import DeviceRun
from partitioner.integrations.torch.pipelines.program import ExportedModel
from partitioner.integrations.torch.pipelines.stage_module import StageModule


def cut(
    program: ExportedModel, runs: Sequence[DeviceRun], recompute: bool = False
) -> tuple[StageModule, ...]:
    """Return the runs as stages; the operators of a run are names of calls of the program.

    A stage takes what any stage from it on reads of what was made before it, and returns the same of the next
    one. The last stage returns what the model returns.
    """
    carried = [_carried(program, runs, number) for number in range(1, len(runs))]
    given, returned = [program.inputs, *carried], [*carried, program.results]
    return tuple(
        StageModule(
            body=_body(program, run, given[i], returned[i]),
            index=i,
            device=run.device,
            operators=run.operators,
            inputs=tuple(program.tensor[node.name] for node in given[i]),
            outputs=tuple(program.tensor[node.name] for node in returned[i]),
            recompute=recompute,
        )
        for i, run in enumerate(runs)
    )


def _carried(program: ExportedModel, runs: Sequence[DeviceRun], number: int) -> list[Any]:
    """Return the nodes of the tensors that pass from before a stage to it or to a later one."""
    early = {node.name for node in program.inputs} | {name for run in runs[:number] for name in run.operators}
    late = [name for run in runs[number:] for name in run.operators]
    read = [node for name in late for node in program.calls[name].all_input_nodes]
    return [node for node in dict.fromkeys((*read, *program.results)) if node.name in early]


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
