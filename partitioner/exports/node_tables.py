"""Plans as tables: the nodes with their devices, and the stages, as CSV; the graph for Graphviz."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from partitioner.results.names import ranges
from partitioner.results.plan import Plan
from partitioner.workload.graph import NodeId
from partitioner.workload.modules import modules_of
from partitioner.workload.workload import Workload

STAGE_COLUMNS = ("stage", "devices", "layers", "parameters", "memory", "load", "bubble")
NODE_COLUMNS = ("id", "name", "module", "backward", "stage", "device")
COLOURS = 12  # of Graphviz's colour scheme set312


def nodes_csv(plan: Plan, workload: Workload) -> str:
    """Return a row for each node: id, title, module, pass, stage (from 1, if the plan has stages), device."""
    graph, modules = workload.graph, modules_of(workload.graph)
    device_of = {name: number for number, name in enumerate(plan.stages, 1)}
    stage: dict[NodeId, int] = {
        node: device_of[name] for node, name in plan.placement.items() if name in device_of
    }
    if plan.stage_of is not None:
        stage = {node: number + 1 for node, number in plan.stage_of.items()}
    names = (*modules.names, "")  # the last is that of nodes without a module
    rows = (
        (node, graph.names[i], names[modules.of[i]], int(graph.backward[i]), stage.get(node, ""), device)
        for i, node in enumerate(graph.ids)
        for device in (plan.placement[node],)
    )
    return _csv(NODE_COLUMNS, rows)


def stages_csv(plan: Plan, workload: Workload) -> str:
    """Return a row for each stage, as :attr:`Plan.by_stage` has it; none if the split is not a chain."""
    del workload  # the plan has all of it
    rows = (
        (
            *(number, " ".join(stage.devices), ", ".join(ranges(stage.layers)), stage.parameters),
            *(stage.memory, stage.load, stage.bubble),
        )
        for number, stage in enumerate(plan.by_stage, 1)
    )
    return _csv(STAGE_COLUMNS, rows)


def graphviz(plan: Plan, workload: Workload) -> str:
    """Return the graph in the language DOT, with a box for each device and a colour for its nodes."""
    graph = workload.graph
    lines = ["digraph plan {", "  rankdir=LR;", "  node [style=filled, colorscheme=set312];"]
    used = dict.fromkeys((*plan.stages, *plan.placement.values()))
    for number, device in enumerate(used):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(device)};"]
        lines += [
            f"    n{i} [label={_quoted(graph.names[i])}, fillcolor={number % COLOURS + 1}];"
            for i, node in enumerate(graph.ids)
            if plan.placement[node] == device
        ]
        lines.append("  }")
    lines += [f"  n{source} -> n{target};" for source, target in graph.edges.tolist()]
    return "\n".join([*lines, "}"]) + "\n"


def _csv(columns: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return file.getvalue()


def _quoted(text: str) -> str:
    r"""Return a text as a string of DOT.

    Examples
    --------
    >>> print(_quoted('a "b"'))
    "a \"b\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
