"""Plan and split files as records, each parsed once, and records resolved for a graph."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.base.files import path_name, read_json
from partitioner.evaluation.solution import PlanRecord
from partitioner.formats.constraints import read_constraints
from partitioner.formats.devices import TRANSFERS, read_transfers
from partitioner.formats.plan_fields import known, read_devices, read_fields
from partitioner.formats.record import Record, identifier, listing
from partitioner.workload.constraints import require_constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph, NodeId

RUN = ("schedule", "microbatches")
OF_CALL = (*RUN, "subgraphs_per_accelerator", "max_time_per_sample")
FIELDS = (
    *("replicas", "stages", "subgraphs", "execution_order", "objective", "split", "bound", "hardware"),
    *("options", "workload_sha256", "workload", "stage_of", "alternatives", "statistics"),
)


def load_record(path: str | os.PathLike[str]) -> PlanRecord:
    """Return the record of a plan file, a split file, or another JSON file with a placement.

    Raises
    ------
    WorkloadError
        Naming the file and every place, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    top = Record(read_json(path), "file", flaws)
    if not top.broken and not {"placement", "fpgas"} & set(top.data):
        top.others(("placement", "fpgas", "cpus"))
        top.note("", "", "is neither a plan (it has no placement) nor a split (it has no fpgas)")
        raise WorkloadError(flaws, path_name(path))
    placement = read_devices(top) if "placement" in top.data else read_split(top)
    found = read_fields(top, FIELDS, required=False)
    record = PlanRecord(placement, order=found.pop("stages") or None, source=path_name(path), **found)
    if flaws:
        raise WorkloadError(flaws, record.source)
    return record


def resolved(record: PlanRecord, graph: Graph, devices: Devices, complete: bool = True) -> PlanRecord:
    """Return the record of a file with the ids of the graph; see `complete` of :func:`load_placement`.

    Raises
    ------
    WorkloadError
        If the plan is made for another graph, or the file names nodes or kinds of device that do not exist.
    """
    record.check_graph(graph, devices, strict=True)
    flaws: list[Flaw] = []
    by_text = known(graph, record.placement, "", flaws)
    known(graph, record.subgraphs or (), "subgraphs, ", flaws)
    known(graph, record.execution_order or (), "execution_order, ", flaws)
    known(graph, record.stage_of or (), "stage_of, ", flaws)
    known(graph, record.alternatives, "alternatives, ", flaws)
    kinds = ", ".join(kind.name for kind in devices.kinds)
    rule = f"must be a kind ({kinds}) and a number, such as {devices.names[0]}"
    flaws += [
        Flaw("placement", "device", shown(name), rule)
        for name in dict.fromkeys(record.placement.values())
        if devices.kind_of(name) is None
    ]
    if flaws:
        raise WorkloadError(flaws, record.source)
    placement = {by_text[str(node)]: device for node, device in record.placement.items()}
    order, subgraphs, stages = record.execution_order, record.subgraphs, record.stage_of
    return replace(
        record,
        placement=_completed(graph, placement) if complete else placement,
        subgraphs=None if subgraphs is None else {by_text[str(node)]: i for node, i in subgraphs.items()},
        stage_of=None if stages is None else {by_text[str(node)]: i for node, i in stages.items()},
        alternatives={by_text[str(node)]: name for node, name in record.alternatives.items()},
        execution_order=None if order is None else tuple(by_text[str(node)] for node in order),
    )


def evaluation_arguments(
    record: PlanRecord, graph: Graph, terms: Sequence[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments of :func:`partitioner.evaluate` that the plan contains and the objective uses.

    Parameters
    ----------
    record
        The plan.
    graph
        The graph that the plan is made for.
    terms
        The names of the arguments that the objective uses.
    given
        The caller's arguments, which take precedence over those of the plan.

    Raises
    ------
    WorkloadError
        If the constraints or transfers among the plan's options break a rule.
    OptionError
        If the caller's constraints are not of type :class:`partitioner.Constraints`.
    """
    known: dict[str, Any] = {
        "replicas": record.replicas or None,
        "subgraphs": record.subgraphs,
        "execution_order": record.execution_order,
        "stage_of": record.stage_of,
        "alternatives": record.alternatives or None,
        TRANSFERS: _option(record, TRANSFERS, graph) if TRANSFERS in terms else None,
        **{name: record.options.get(name) for name in OF_CALL},
    }
    found = {name: value for name, value in known.items() if name in terms and value is not None}
    found |= {"constraints": _option(record, "constraints", graph)}
    found |= {name: value for name, value in given.items() if value is not None}
    if "order" in terms and any(name in found for name in ("replicas", "stage_of", "alternatives", *RUN)):
        found.setdefault("order", record.order)
    constraints = found["constraints"]
    require_constraints(constraints)
    if constraints is not None and constraints.for_chains:
        found.setdefault("split", record.split)
    return {name: value for name, value in found.items() if value is not None}


def _option(record: PlanRecord, name: str, graph: Graph) -> Any:
    """Return the constraints or transfers among the options of the plan; None if they are not there."""
    if name not in record.options:
        return None
    flaws: list[Flaw] = []
    data = json.loads(json.dumps(record.options[name]))
    if name == TRANSFERS:
        found: Any = read_transfers(Record({TRANSFERS: data}, f"options.{name}", flaws))
    else:
        found = read_constraints(Record(data, f"options.{name}", flaws), graph)
    if flaws:
        raise WorkloadError(flaws, record.source)
    return found


def _completed(graph: Graph, placement: Mapping[NodeId, str]) -> dict[NodeId, str]:
    home: dict[int, str] = {}
    for node, color in zip(graph.ids, graph.color.tolist(), strict=True):
        if color >= 0 and node in placement:
            home.setdefault(color, placement[node])
    found = dict(placement)
    for node, color in zip(graph.ids, graph.color.tolist(), strict=True):
        if node not in found and color in home:
            found[node] = home[color]
    return found


# The split JSON of msr-fiddle/dnn-partitioning: `fpgas` and `cpus`, each a list of devices with
# `nodes`.

SPLIT_KINDS = {"fpgas": "accelerator", "cpus": "cpu"}


def read_split(top: Record) -> dict[NodeId, str]:
    """Return the device of every node that a split places."""
    placement: dict[NodeId, str] = {}
    seen: set[str] = set()
    for field, kind in SPLIT_KINDS.items():
        for place, data in enumerate(top.take(field, listing, [])):
            record = Record(data, f"{field}[{place}]", top.flaws)
            for item in record.take("nodes", listing, []):
                entry = Record({"nodes": item}, record.where, top.flaws)
                node = entry.take("nodes", identifier, None)
                if str(node) in seen:
                    record.note("nodes", shown(node), "is placed twice")
                elif node is not None:
                    placement[node] = f"{kind}{place}"
                    seen.add(str(node))
    return placement
