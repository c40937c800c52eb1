"""The steps from a captured program to a module that runs on several devices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitioner.integrations.torch.graphs.unlisted import foreign_operators, of_calls
from partitioner.integrations.torch.placing.assignment import Assignment, require_operators
from partitioner.integrations.torch.placing.cuts import CopiedGraph
from partitioner.integrations.torch.placing.homes import homes_of, settle
from partitioner.integrations.torch.placing.order import reorder
from partitioner.integrations.torch.placing.program import put_on
from partitioner.integrations.torch.placing.writes import require_inputs_kept


def placed_module(
    module: Any, operator: Mapping[Any, str], assignment: Assignment, devices: Mapping[str, Any]
) -> Any:
    """Return the module with its calls in the plan's order and its tensors and copies on their devices.

    Parameters
    ----------
    module
        The module of the captured program, which is changed.
    operator
        The operator that each call belongs to.
    assignment
        Where operators run.
    devices
        The device of torch for each name.
    """
    foreign = foreign_operators(operator, assignment.device)
    require_operators(assignment, operator.values(), {*operator.values()} - {*foreign})
    device = of_calls(operator, assignment.device)
    require_inputs_kept(module.graph, {node.name: name for node, name in operator.items()})
    if assignment.rank:
        reorder(module.graph, of_calls(operator, assignment.rank))
    home = homes_of(module, device)
    module.copies = tuple(CopiedGraph(module.graph, home, devices).copies)
    put_on({node: devices[name] for node, name in device.items()}, module)
    held = {node.target: devices[name] for node, name in home.items() if node.op == "get_attr"}
    settle(module, held, devices[next(iter(device.values()))])
    module.graph.lint()
    module.recompile()
    return module
