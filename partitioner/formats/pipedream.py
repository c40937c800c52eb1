"""Workloads from PipeDream's profiles: a forward node for each node and, for training, a backward node."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

from partitioner.base.argument_types import is_count
from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.base.files import path_name, read_text
from partitioner.base.units import MS_PER_SECOND
from partitioner.formats.record import Record, RuleBrokenError
from partitioner.workload.device_validation import LARGEST, MAX_COUNT, SMALLEST, number_rule
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Bools, Extras, Floats, Graph, Ints
from partitioner.workload.workload import Workload

BACKWARD = "/backward"


def load_pipedream(
    path: str | os.PathLike[str],
    *,
    bandwidth: float,
    accelerators: int,
    memory: float | None = None,
    cpus: int = 0,
    cpu_factor: float | None = None,
    training: bool = True,
    trimmed: bool = False,
    communication: str = "sequential",
) -> Workload:
    """Return the workload of a ``graph.txt`` of PipeDream's profiler; times are in ms, sizes in bytes.

    For training, every node has a backward node of the same colour class, whose id ends in ``/backward``,
    and every edge has a mirrored edge. The cost of an edge is the time to transfer the activation, or its
    gradient. A forward node holds its parameters and, for training, the activation of a sample; a backward
    node holds the gradients of the parameters. Replicas exchange weights with the same bandwidth. The extras
    of the graph keep the arguments, and for each node its bytes and its stage.

    Parameters
    ----------
    path
        The file.
    bandwidth
        Bytes per second between an accelerator and host memory.
    accelerators, memory
        The number of accelerators, and the bytes of memory of each; None for no limit.
    cpus, cpu_factor
        The number of CPUs, and the factor by which a CPU takes longer than an accelerator.
    training
        Whether to add backward nodes.
    trimmed
        Whether to leave out the nodes that PipeDream's planner leaves out: data loading, and unused items of
        tuples.
    communication
        The model of communication, see :class:`partitioner.Devices`.

    Raises
    ------
    WorkloadError
        Naming the file and every line, field, value and rule that was broken.
    OptionError
        If the bandwidth or the factor is out of its range.
    """
    _require_positive("bandwidth", bandwidth)
    for name, flag in (("training", training), ("trimmed", trimmed)):
        if not isinstance(flag, bool):
            raise OptionError(f"{name} = {shown(flag)}: must be True or False")
    if not is_count(cpus, 0, MAX_COUNT):
        raise OptionError(f"cpus = {shown(cpus)}: must be an integer from 0 to {MAX_COUNT:,}")
    if cpus or cpu_factor is not None:
        _require_positive("cpu_factor", cpu_factor)
    source, profile = path_name(path), read_profile(path)
    given = {"bandwidth": bandwidth, "cpuFactor": cpu_factor, "training": training, "trimmed": trimmed}
    try:
        graph = _graph(profile.trimmed() if trimmed else profile, given)
        devices = Devices.accelerated(accelerators, memory=memory, cpus=cpus, communication=communication)
        accelerator, *others = devices.kinds
        linked = replace(accelerator, bandwidth=bandwidth / MS_PER_SECOND)
        return Workload(graph, replace(devices, kinds=(linked, *others)), Path(path).stem)
    except WorkloadError as error:
        raise type(error)(error.flaws, source) from error


def _graph(profile: Profile, given: dict[str, Any]) -> Graph:
    n, training = len(profile), given["training"]
    time, ids, pairs = profile.forward, profile.ids, profile.edges
    if training:
        time = np.concatenate((time, profile.backward))
        ids += tuple(node + BACKWARD for node in ids)
        pairs = np.concatenate((pairs, pairs[:, ::-1] + n))
    copies = 2 if training else 1
    with np.errstate(over="ignore"):
        cost = np.tile(profile.activation[profile.edges[:, 0]] / given["bandwidth"] * MS_PER_SECOND, copies)
        times = _times(time, given["cpuFactor"])
    return Graph.from_arrays(
        times,
        [(ids[u], ids[v]) for u, v in pairs.tolist()],
        cost,
        ids=ids,
        backward=np.arange(len(ids)) >= n,
        color=[*profile.ids] * 2 if training else None,
        names=profile.descriptions * copies,
        extras=Extras({"timeUnit": "ms", **given}, _kept(profile) * copies),
        **_memory(profile, training),
    )


def _memory(profile: Profile, training: bool) -> dict[str, Any]:
    """Return the parts of the memory of each node, in bytes, forward nodes first."""
    if not training:
        return {"parameters": profile.parameters}
    none = np.zeros(len(profile))
    return {
        "parameters": np.concatenate((profile.parameters, none)),
        "gradients": np.concatenate((none, profile.parameters)),
        "activations": np.concatenate((profile.activation, none)),
    }


def _times(time: Floats, cpu_factor: float | None) -> dict[str, Floats]:
    return {"accelerator": time} | ({} if cpu_factor is None else {"cpu": time * cpu_factor})


def _kept(profile: Profile) -> list[dict[str, Any]]:
    """Return the data of each node that has no field in a graph, for the extras."""
    columns = (profile.activation.tolist(), profile.parameters.tolist(), profile.stage.tolist())
    return [
        {"activationBytes": activation, "parameterBytes": parameters}
        | ({} if stage < 0 else {"stageId": stage})
        for activation, parameters, stage in zip(*columns, strict=True)
    ]


def _require_positive(name: str, value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and 0 < value <= sys.float_info.max):  # type: ignore[operator]
        raise OptionError(f"{name} = {shown(value)}: must be a number above 0")


# Reading of profiles of PipeDream (msr-fiddle/pipedream): the text file ``graph.txt``.
#
# A line is a node, ``node1 -- description -- forward_compute_time=1.5, backward_compute_time=3.0,
# activation_size=64.0, parameter_size=128.0``, with or without `` -- stage_id=0`` at its end, or an
# edge: a tab and ``node1 -- node2``. Times are in ms, sizes in bytes; an activation of several tensors
# is a list, ``[64.0; 32.0]``.


@dataclass(frozen=True, eq=False)
class Profile:
    """A profiled forward graph of `n` nodes and `m` edges, in the order of the file.

    Parameters
    ----------
    ids, descriptions
        The name and the description of each node.
    forward, backward
        Shape (n,): times in ms.
    activation, parameters
        Shape (n,): bytes of all output tensors of a node, and of its weights.
    edges
        Shape (m, 2): positions of producer and consumer.
    stage
        Shape (n,): the stage that a planner chose, -1 for none.
    """

    ids: tuple[str, ...]
    descriptions: tuple[str, ...]
    forward: Floats
    backward: Floats
    activation: Floats
    parameters: Floats
    edges: Ints
    stage: Ints

    def __len__(self) -> int:
        return len(self.ids)

    def trimmed(self) -> Profile:
        """Return the profile without sources ``Input*`` and sinks ``__getitem__*``, as PipeDream plans it."""
        inputs = self._named("Input") & (np.bincount(self.edges[:, 1], minlength=len(self)) == 0)
        rest = self._only(~inputs)
        unread = np.bincount(rest.edges[:, 0], minlength=len(rest)) == 0
        return rest._only(~(rest._named("__getitem__") & unread))

    def _named(self, beginning: str) -> Bools:
        return np.array([text.startswith(beginning) for text in self.descriptions], dtype=bool)

    def _only(self, kept: Bools) -> Profile:
        """Return the subgraph of the nodes that are kept."""
        place = np.cumsum(kept) - 1
        ids, descriptions = (
            tuple(text for text, keep in zip(texts, kept, strict=True) if keep)
            for texts in (self.ids, self.descriptions)
        )
        return Profile(
            ids=ids,
            descriptions=descriptions,
            forward=self.forward[kept],
            backward=self.backward[kept],
            activation=self.activation[kept],
            parameters=self.parameters[kept],
            edges=place[self.edges[kept[self.edges].all(axis=1)]],
            stage=self.stage[kept],
        )


def read_profile(path: str | os.PathLike[str]) -> Profile:
    """Return the profile in a ``graph.txt`` of PipeDream's profiler or planner.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    WorkloadError
        Naming the file and every line, field, value and rule that was broken.
    """
    lines = Lines()
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if line[:1] in ("\t", " ") and line.strip():
            read_edge(line.strip(), f"line {number}", lines)
        elif line.strip():
            read_node(line.strip(), f"line {number}", lines)
    edges = _positions(lines)
    if not lines.ids and not lines.flaws:
        lines.flaws.append(Flaw("file", "nodes", "", "there must be at least one"))
    flaws = lines.flaws or _cycle_flaws(lines.ids, edges)
    if flaws:
        raise WorkloadError(flaws, path_name(path))
    forward, backward, activation, parameters = np.array(lines.numbers, dtype=np.float64).T
    stage = np.array(lines.stage, dtype=np.int64)
    names = tuple(lines.ids), tuple(lines.descriptions)
    return Profile(*names, forward, backward, activation, parameters, edges, stage)


def _positions(lines: Lines) -> Ints:
    """Return the edges between known nodes as positions, shape (m, 2).

    Other edges add a flaw, unless the id of some node could not be read.
    """
    place = {node: i for i, node in enumerate(lines.ids)}
    if not lines.nameless:
        lines.flaws += [
            Flaw(where, name, shown(end), "is not the id of a node")
            for source, target, where in lines.edges
            for name, end in (("source", source), ("target", target))
            if end not in place
        ]
    pairs = [(place[s], place[t]) for s, t, _ in lines.edges if s in place and t in place]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _cycle_flaws(ids: Sequence[str], edges: Ints) -> list[Flaw]:
    graph: nx.DiGraph[int] = nx.DiGraph(edges.tolist())
    if nx.is_directed_acyclic_graph(graph):
        return []
    cycle = [source for source, _ in nx.find_cycle(graph)]
    path = " -> ".join(ids[i] for i in [*cycle, cycle[0]])
    return [Flaw("edges", "", path, "is a cycle; the graph must have none")]


# The lines of a profile: nodes with their fields, and edges.

FIELDS = ("forward_compute_time", "backward_compute_time", "activation_size", "parameter_size")
STAGE = "stage_id"
KNOWN = (*FIELDS, STAGE)
DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NODE_RULE = "must be `id -- description -- fields`, or a tab and an edge `id -- id`"


@dataclass
class Lines:
    """The content of the lines read so far, and their flaws.

    Parameters
    ----------
    ids, descriptions, numbers, stage
        One entry for each node; the numbers are those of `FIELDS`.
    edges
        The ids of producer and consumer of each edge, and its line.
    known
        The set of the ids.
    flaws
        The broken rules so far.
    nameless
        Whether the id of some node could not be read.
    """

    ids: list[str] = field(default_factory=list)
    descriptions: list[str] = field(default_factory=list)
    numbers: list[tuple[float, ...]] = field(default_factory=list)
    stage: list[int] = field(default_factory=list)
    edges: list[tuple[str, str, str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    flaws: list[Flaw] = field(default_factory=list)
    nameless: bool = False


def read_node(line: str, where: str, lines: Lines) -> None:
    """Add the node in a line, and the flaws of the line."""
    parts = line.split(" -- ")
    stage = parts.pop() if len(parts) > 3 and parts[-1].startswith(f"{STAGE}=") else None
    if len(parts) < 3 or not parts[0]:
        lines.flaws.append(Flaw(where, "", shown(line), NODE_RULE))
        lines.nameless = True
        return
    if parts[0] in lines.known:
        lines.flaws.append(Flaw(where, "id", shown(parts[0]), "is given to more than one node"))
    entries = parts[-1].split(", ") + ([stage] if stage else [])
    record = Record(_entries(entries, where, lines.flaws), where, lines.flaws)
    lines.ids.append(parts[0])
    lines.known.add(parts[0])
    lines.descriptions.append(" -- ".join(parts[1:-1]))
    takes = (_decimal, _decimal, _total, _decimal)
    lines.numbers.append(
        tuple(record.take(name, take, 0.0) for name, take in zip(FIELDS, takes, strict=True))
    )
    lines.stage.append(record.take(STAGE, _whole, -1, required=False))
    for name in sorted(record.data.keys() - set(KNOWN)):
        record.note(name, shown(record.data[name]), f"is not a field; known are {', '.join(KNOWN)}")


def _entries(entries: Sequence[str], where: str, flaws: list[Flaw]) -> dict[str, str]:
    """Return the values of entries ``name=value`` by name."""
    found: dict[str, str] = {}
    for entry in entries:
        name, sign, value = entry.partition("=")
        if not sign:
            flaws.append(Flaw(where, "", shown(entry), "must be `name=value`"))
        elif name in found:
            flaws.append(Flaw(where, name, shown(value), "is given twice"))
        else:
            found[name] = value
    return found


def read_edge(line: str, where: str, lines: Lines) -> None:
    """Add the edge in a line, or the flaw of the line."""
    ends = line.split(" -- ")
    if len(ends) != 2:
        lines.flaws.append(Flaw(where, "", shown(line), "must be an edge `id -- id` after its tab"))
    elif ends[0] == ends[1]:
        lines.flaws.append(Flaw(where, "edge", shown(line), "must join two different nodes"))
    else:
        lines.edges.append((ends[0], ends[1], where))


def _decimal(text: str) -> float:
    if not DECIMAL.fullmatch(text):
        raise RuleBrokenError("must be a number")
    return _in_range(float(text))


def _total(text: str) -> float:
    """Return a number, or the sum of a list of numbers."""
    if not (text.startswith("[") and text.endswith("]")):
        return _decimal(text)
    try:
        return _in_range(sum(_decimal(item.strip()) for item in text[1:-1].split(";")))
    except RuleBrokenError as broken:
        raise RuleBrokenError(f"{broken}; so must each number of a list [a; b]") from None


def _in_range(value: float) -> float:
    if value == 0 or SMALLEST <= value <= LARGEST:
        return value
    raise RuleBrokenError(number_rule(value))


def _whole(text: str) -> int:
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII):
        raise RuleBrokenError("must be a whole number of at least 0")
    return int(text)
