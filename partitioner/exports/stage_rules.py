"""The rules for plans that a tool is to express: each function yields a flaw for whatever breaks one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from partitioner.base.errors import Flaw, shown
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas
from partitioner.exports.module_stages import Stages
from partitioner.exports.target import ANY_RANKS, ONE, VEE, Target
from partitioner.workload.graph import Bools, Graph, Ints
from partitioner.workload.module_groups import edges_of_inputs, shared_parameters
from partitioner.workload.modules import Modules
from partitioner.workload.workload import Workload


def misnamed(modules: Modules) -> Iterator[Flaw]:
    """Yield a flaw for each name that several modules have, and one if there is no module."""
    if not modules.names:
        yield Flaw("graph", "", "", "has no forward nodes, and so no modules")
    names, counts = np.unique(np.array(modules.names, dtype=object).astype(str), return_counts=True)
    for name, count in zip(names.tolist(), counts.tolist(), strict=True):
        if count > 1:
            rule = (
                f"is the name of {count} modules; give nodes of a module one layer, and others distinct names"
            )
            yield Flaw(f"module {name}", "", "", rule)


def cut(placed: Placed, modules: Modules) -> Iterator[Flaw]:
    """Yield a flaw for each module whose nodes are on several devices."""
    inside = np.flatnonzero(modules.of >= 0)
    _, first = np.unique(modules.of[inside], return_index=True)
    home = placed.device[inside[first]]
    apart = inside[placed.device[inside] != home[modules.of[inside]]]
    for i in apart[np.unique(modules.of[apart], return_index=True)[1]].tolist():
        module = int(modules.of[i])
        on = f"is on {placed.names[home[module]]}, its node {shown(placed.graph.ids[i])} on "
        rule = "a module must be on one device"
        yield Flaw(f"module {modules.names[module]}", "", f"{on}{placed.names[placed.device[i]]}", rule)


def replicated(placed: Placed, copies: Replicas) -> Iterator[Flaw]:
    """Yield a flaw for each device that holds a copy of a stage alone."""
    for i in np.flatnonzero(copies.further & (copies.count == copies.devices)[copies.lead]).tolist():
        rule = "holds a copy of a stage; replicas of single stages cannot be expressed"
        yield Flaw(f"device {placed.names[i]}", "", "", rule)


def exchanged(graph: Graph, found: Stages) -> Ints:
    """Return the forward edges between stages whose tensor depends on a parameter, shape (edges, 2)."""
    return np.asarray(graph.edges[between_stages(graph, found) & ~edges_of_inputs(graph)])


def between_stages(graph: Graph, found: Stages) -> Bools:
    """Return which edges of the forward pass lead from a stage to another one, shape (edges,)."""
    forward = ~graph.backward[graph.edges].any(axis=1)
    return np.asarray(forward & (found.of[graph.edges[:, 0]] != found.of[graph.edges[:, 1]]))


def skipping(placed: Placed, modules: Modules, found: Stages) -> Iterator[Flaw]:
    """Yield a flaw for each pair of modules of which one sends a tensor past a stage, or backwards."""
    edges = exchanged(placed.graph, found)
    far = found.of[edges[:, 1]] != found.of[edges[:, 0]] + 1
    pairs = np.unique(modules.of[edges[far]], axis=0)
    stage = {name: i for i, stage in enumerate(found.stages) for name in stage.modules}
    for one, other in ((modules.names[i], modules.names[j]) for i, j in pairs.tolist()):
        sends = f"of stage {stage[one]} sends a tensor to {other} of stage {stage[other]}"
        yield Flaw(f"module {one}", "", sends, "a stage sends tensors to the next one only")


def wrong_ranks(found: Stages, target: Target) -> Iterator[Flaw]:
    """Yield a flaw for each stage on a device that the target would not give it."""
    if target.ranks == ANY_RANKS or (target.ranks == VEE and is_vee(found)):
        return
    count = len(found.ranks)
    rule = "a device has one stage" if target.ranks == ONE else f"stage k must be on device k mod {count}"
    if target.ranks == VEE:
        rule += f", or of {2 * count} stages k and {2 * count - 1} - k on device k"
    for number, rank in enumerate(found.rank_of):
        expected = number if target.ranks == ONE else number % count
        if rank != expected:
            first = found.stages[number].modules[0]
            yield Flaw(f"stage {number} (from module {first})", "", f"is on {found.ranks[rank]}", rule)
    if target.ranks != ONE and len(found.stages) % count:
        rule = f"must be a multiple of the {count} devices"
        yield Flaw("number of stages", "", str(len(found.stages)), rule)


def is_vee(found: Stages) -> bool:
    """Whether device k of p has stages k and 2 p - 1 - k, as the schedules ZB-V and DualPipeV want it."""
    once = range(len(found.ranks))
    return found.rank_of == (*once, *reversed(once))


def tied(workload: Workload, modules: Modules, found: Stages, target: Target) -> Iterator[Flaw]:
    """Yield a flaw for each parameter that several stages hold, or several devices if stages need no line."""
    for name, nodes in shared_parameters(workload.graph).items():
        stages = np.unique(found.of[nodes]).tolist()
        if len(stages if target.line else {found.stages[i].device for i in stages}) > 1:
            holders = dict.fromkeys((modules.names[modules.of[i]], int(found.of[i])) for i in nodes.tolist())
            where = f"is shared by {' and '.join(f'{module} of stage {i}' for module, i in holders)}"
            what = "in one stage" if target.line else "on one device"
            yield Flaw(f"parameter {name}", "", where, f"tied weights must be {what}")


def kinds(workload: Workload, found: Stages, one: bool) -> Iterator[Flaw]:
    """Yield flaws for stages on a kind without memory of its own, with `one` also on a second kind."""
    kind_of = {name: workload.devices.kind_of(name) for name in found.ranks}
    kinds = {name: workload.devices.kinds[at[0]] for name, at in kind_of.items() if at is not None}
    first = found.ranks[0]
    for name, kind in kinds.items():
        if not kind.pays_communication:
            yield Flaw(f"device {name}", "", "", "has no memory of its own; stages must be on accelerators")
        elif one and kind.name != kinds[first].name:
            rule = f"is of kind {kind.name}, {first} of kind {kinds[first].name}; all must be of one kind"
            yield Flaw(f"device {name}", "", "", rule)


def without_stage(placed: Placed, found: Stages) -> Iterator[Flaw]:
    """Yield a flaw for each device that has nodes but no stage: only backward nodes of no module."""
    for i in np.unique(placed.device).tolist():
        if placed.names[i] not in found.ranks:
            node = placed.graph.ids[int(np.flatnonzero(placed.device == i)[0])]
            rule = "has backward nodes only, so that it has no stage"
            yield Flaw(f"device {placed.names[i]}", "", f"holds node {shown(node)}", rule)
