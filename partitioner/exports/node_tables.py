"""Plans as tables: the nodes with their devices, and the stages, as CSV; the graph for Graphviz."""

from __future__ import annotations

from partitioner.base.safe_text import csv_text
from partitioner.evaluation.text.names import ranges
from partitioner.results.plan import Plan
from partitioner.results.ways_table import ways_text
from partitioner.workload.graph import NodeId
from partitioner.workload.modules import modules_of
from partitioner.workload.workload import Workload

STAGE_COLUMNS = ("stage", "devices", "layers", "parameters", "memory", "load", "bubble")
CHOSEN_COLUMNS = ("copies", "degree", "ways")
NODE_COLUMNS = ("id", "name", "module", "backward", "stage", "device")
COLOURS = 12  # of Graphviz's colour scheme set312


def nodes_csv(plan: Plan, workload: Workload) -> str:
    """Return a row for each node: id, title, module, pass, stage (from 1, if the plan has stages), device.

    If the plan chooses among alternatives, the last column is the one that the node runs by, if any.
    """
    graph, modules = workload.graph, modules_of(workload.graph)
    device_of = {name: number for number, name in enumerate(plan.stages, 1)}
    stage: dict[NodeId, int] = {
        node: device_of[name] for node, name in plan.placement.items() if name in device_of
    }
    if plan.stage_of is not None:
        stage = {node: number + 1 for node, number in plan.stage_of.items()}
    names = (*modules.names, "")  # the last is that of nodes without a module
    chosen = plan.alternatives
    rows = (
        (
            *(node, graph.names[i], names[modules.of[i]], int(graph.backward[i]), stage.get(node, "")),
            *(plan.placement[node], *((chosen.get(node, ""),) if chosen else ())),
        )
        for i, node in enumerate(graph.ids)
    )
    return csv_text((*NODE_COLUMNS, *(("way",) if chosen else ())), rows)


def stages_csv(plan: Plan, workload: Workload) -> str:
    """Return a row for each stage, as :attr:`Plan.by_stage` has it; none if the split is not a chain.

    The last columns are there if the plan chooses among alternatives.
    """
    del workload  # the plan has all of it
    rows = (
        (
            *(number, " ".join(stage.devices), ", ".join(ranges(stage.layers)), stage.parameters),
            *(stage.memory, stage.load, stage.bubble),
            *((stage.copies, stage.degree, ways_text(stage)) if plan.alternatives else ()),
        )
        for number, stage in enumerate(plan.by_stage, 1)
    )
    return csv_text((*STAGE_COLUMNS, *(CHOSEN_COLUMNS if plan.alternatives else ())), rows)


def graphviz(plan: Plan, workload: Workload) -> str:
    """Return the graph in the language DOT, with a box for each device and a colour for its nodes.

    The name of the alternative that a node runs by is in its label's second line.
    """
    graph = workload.graph
    lines = ["digraph plan {", "  rankdir=LR;", "  node [style=filled, colorscheme=set312];"]
    used = dict.fromkeys((*plan.stages, *plan.placement.values()))
    labels = [_label(graph.names[i], plan.alternatives.get(node)) for i, node in enumerate(graph.ids)]
    for number, device in enumerate(used):
        lines += [f"  subgraph cluster_{number} {{", f"    label={_quoted(device)};"]
        lines += [
            f"    n{i} [label={_quoted(label)}, fillcolor={number % COLOURS + 1}];"
            for i, (node, label) in enumerate(zip(graph.ids, labels, strict=True))
            if plan.placement[node] == device
        ]
        lines.append("  }")
    lines += [f"  n{source} -> n{target};" for source, target in graph.edges.tolist()]
    return "\n".join([*lines, "}"]) + "\n"


def _label(title: str, way: str | None) -> str:
    return title if way is None else f"{title}\n{way}"


def _quoted(text: str) -> str:
    r"""Return a text as a string of DOT.

    Examples
    --------
    >>> print(_quoted('a "b"'))
    "a \"b\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
