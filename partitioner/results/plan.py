"""The plan: the device of every node, the value of the objective, and a bound that proves how good it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from partitioner.base.files import write_text
from partitioner.evaluation.loads import DeviceLoad, loads_html
from partitioner.evaluation.schedule import Schedule
from partitioner.evaluation.solution import PlanRecord
from partitioner.evaluation.text.figures import amount, nearness, relative_gap
from partitioner.evaluation.text.names import joined_within, ranges
from partitioner.evaluation.text.tables import (
    WIDE,
    columns,
    figure_table,
    rate_of,
    render,
    tables_of,
    unit_of,
)
from partitioner.methods.method import ANY_DEVICES
from partitioner.results.by_stage import StageLoad
from partitioner.results.rates import rates_in_words
from partitioner.results.serving import MAXIMISED, TIME_BOUND, served_lines
from partitioner.results.ways_table import ways_table
from partitioner.workload.devices import Devices
from partitioner.workload.graph import NodeId

AMONG = "optimal (see the note)"


@dataclass(frozen=True)
class Plan:
    """The result of :func:`partitioner.solve`; `value` and `devices` come from the evaluator.

    Parameters
    ----------
    objective, split
        The objective and the split of the call.
    value
        The value of the objective for the placement, in the time unit of the graph; for ``"capacity"`` the
        number of samples in flight.
    bound
        Lower bound: no placement with this split has a smaller value; for ``"capacity"`` an upper bound.
    status
        ``"optimal"`` if that is proven, else ``"feasible"``.
    stop_reason
        Why the method ended: ``"optimal"``, ``"gap"``, ``"time_limit"``, ``"interrupted"``,
        ``"out_of_memory"`` or ``"heuristic"`` (a heuristic that ran to its end).
    method, backend
        The method that found the plan, and the solver that it used.
    runtime_seconds
        Wall time of the call.
    devices
        Load, memory and number of nodes of every device.
    stages
        The device of every stage in the order of the pipeline; empty if the split is not a chain.
    placement
        Device name for every node id.
    workload_sha256
        Hash of the graph and the devices, see :attr:`partitioner.Workload.sha256`.
    seed, options
        The seed and the further options of the call.
    notes
        Sentences on what the workload does not determine, on options without effect, and on the proof.
    statistics
        Figures of the run, by name.
    native_status
        The backend's message on why it stopped; empty if there is none.
    subgraphs
        For latency: the index of every node's subgraph among those of its device and pass.
    schedule
        What runs when, for latency and for makespans. The file of a plan leaves it out if there is an
        execution order, from which it follows.
    replicas
        For a device of the placement, the further devices that hold a copy of its stage.
    execution_order
        For makespans without a pipeline: all nodes in the order in which their devices run them.
    hardware
        The devices that the plan is made for; None for a plan from an older file without them.
    by_stage
        The layers, parameters, memory, load and bubble of each stage, and how its nodes run; empty if the
        split is not a chain, and for a plan from an older file.
    alternatives
        The name of the alternative of each node that is not run as its own figures say.
    time_unit
        The unit of all times, ``"s"``, ``"ms"`` or ``"us"``, if the graph gives it; else empty.
    stage_of
        The number, from 0, of every node's stage if devices have several stages; else None.
    workload
        The name of the workload, if the plan was saved with it.
    rates
        The value in other words, as far as the graph tells: `samples_per_second`, `tokens_per_second`,
        `batch_seconds`, `tflops_per_device`.
    parts
        What the value is made of, as in :class:`partitioner.Evaluation`.
    """

    objective: str
    split: str
    value: float
    bound: float
    status: str
    stop_reason: str
    method: str
    backend: str
    runtime_seconds: float
    devices: tuple[DeviceLoad, ...]
    stages: tuple[str, ...]
    placement: Mapping[NodeId, str]
    workload_sha256: str
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    statistics: Mapping[str, float] = field(default_factory=dict)
    native_status: str = ""
    subgraphs: Mapping[NodeId, int] | None = None
    schedule: Schedule | None = None
    replicas: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    execution_order: tuple[NodeId, ...] | None = None
    hardware: Devices | None = None
    by_stage: tuple[StageLoad, ...] = ()
    alternatives: Mapping[NodeId, str] = field(default_factory=dict)
    time_unit: str = ""
    stage_of: Mapping[NodeId, int] | None = None
    workload: str = ""
    rates: Mapping[str, float] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)

    def __hash__(self) -> int:
        known = (self.objective, self.split, self.value, self.bound, self.status, self.method, self.stages)
        return hash((*known, self.workload_sha256, self.seed))

    def __repr__(self) -> str:
        used = sum(device.nodes > 0 or device.replica_of is not None for device in self.devices)
        return (
            f"<Plan: {self.objective}, {self.split} split, value {self.value:.6g}, bound {self.bound:.6g}, "
            f"{self.status}, method {self.method}, {len(self.placement)} nodes on {used} of "
            f"{len(self.devices)} devices>"
        )

    def _repr_html_(self) -> str:
        return loads_html(repr(self)[1:-1], self.devices)

    @property
    def gap(self) -> float:
        """The largest possible distance to the optimum, as a fraction of the larger of value and bound."""
        return relative_gap(self.value, self.bound)

    @property
    def bound_on_any_devices(self) -> float:
        """The bound, lower if the method proves it only for some choices of unlike devices."""
        return min(self.bound, self.statistics.get(ANY_DEVICES, self.bound))

    @property
    def maximised(self) -> bool:
        """Whether larger values are better, so that `bound` is an upper bound."""
        return MAXIMISED.get(self.objective, False)

    @property
    def bottleneck(self) -> DeviceLoad:
        """The device with the largest load."""
        return max(self.devices, key=lambda device: device.load)

    @property
    def record(self) -> PlanRecord:
        """The solution with objective, devices and options, in the form that the evaluator takes."""
        return PlanRecord(
            placement=self.placement,
            replicas=self.replicas,
            order=self.stages or None,
            subgraphs=self.subgraphs,
            execution_order=self.execution_order,
            stage_of=self.stage_of,
            alternatives=self.alternatives,
            objective=self.objective,
            split=self.split,
            bound=self.bound,
            hardware=self.hardware,
            options=self.options,
            workload_sha256=self.workload_sha256,
            workload=self.workload,
            statistics=self.statistics,
        )

    def summary(self, width: int | None = None) -> str:
        """Return the plan as text of at most `width` columns, by default the terminal's.

        The text has the value and its proof, a line for each device in pipeline order, the layers of each
        stage if the graph has layers, and the notes.
        """
        by_operator = self.execution_order is not None
        tables = tables_of(self.devices, self.stages, self.schedule, width, by_operator)
        stages = stage_table(self.by_stage, width)
        tables += [] if stages is None else ["", stages]
        ways = ways_table(self.by_stage, width)
        tables += [] if ways is None else ["", ways]
        notes = [Text(f"note: {note}") for note in self.notes]
        if len(self.rates) > 1:
            notes.insert(0, Text(f"rates: {rates_in_words(self.rates)}"))
        if self.hardware is not None and not by_operator:
            notes.insert(0, Text(f"transfers: {self.hardware.transfer_words}"))
        return render([Text(self.headline()), *tables, *notes], width)

    def headline(self) -> str:
        """Return the value and its proof in a line, and the method and its run in a second one."""
        ended = f"stopped: {self.stop_reason}, {self.runtime_seconds:.3g} s"
        run = f"method {self.method} ({self.backend}), {ended}"
        if self.maximised:
            least = self.statistics.get(TIME_BOUND)
            served = served_lines(self.value, self.bound, self.bottleneck.load, least, self.time_unit)
            return f"{self.objective}, {self.split} split: {served}\n{run}"
        optimal = "optimal" if self.bound_on_any_devices >= self.bound else AMONG
        proof = optimal if self.status == "optimal" else nearness(self.value, self.bound)
        by_operator = self.execution_order is not None
        unit = unit_of(self.objective, pipelined=not by_operator)
        known = f" {self.time_unit}" if unit and self.time_unit else ""
        rate = rate_of(self.objective, self.value, self.time_unit)
        return (
            f"{self.objective}, {self.split} split: {self.value:.6g}{known}{unit}{rate}, {proof}\n"
            f"lower bound {self.bound:.6g}{known}; {run}"
        )

    def to_json(self) -> str:
        """Return the plan as a JSON object, which :func:`partitioner.load_plan` reads."""
        record = asdict(self) | {"gap": self.gap, "format": "partitioner-plan-1"}
        record["hardware"] = None if self.hardware is None else self.hardware.as_dict()
        record["devices"] = [device.as_dict() for device in self.devices]
        record["by_stage"] = [stage.as_dict() for stage in self.by_stage]
        record["placement"] = {str(node): device for node, device in self.placement.items()}
        for name in ("subgraphs", "schedule", "execution_order", "hardware", "stage_of"):
            if record[name] is None:
                del record[name]
        for name in ("replicas", "by_stage", "alternatives", "time_unit", "workload", "rates", "parts"):
            if not record[name]:
                del record[name]
        for name in ("subgraphs", "stage_of", "alternatives"):
            if name in record:
                record[name] = {str(node): value for node, value in record[name].items()}
        ambiguous = [node for node in self.placement if isinstance(node, str) and _looks_whole(node)]
        return json.dumps(record | ({"text_ids": ambiguous} if ambiguous else {}), indent=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan as JSON; the file holds all of it or stays as it was.

        Raises
        ------
        PartitionerError
            If the file cannot be written.
        """
        write_text(path, self.to_json() + "\n")


def _looks_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20 and str(int(text)) == text


def node_id(text: str, text_ids: frozenset[str] = frozenset()) -> NodeId:
    """Return the node id of a key in a plan file: an integer if it reads as one and is not in `text_ids`."""
    return int(text) if _looks_whole(text) and text not in text_ids else text


# The stages of a plan as a table.

NARROW_NAMES, WIDE_NAMES = 44, 100


def stage_table(stages: Sequence[StageLoad], width: int | None) -> Table | None:
    """Return a table of what the table of devices does not show: layers, parameters, bubble.

    The result is None if neither the layers nor the bubble of a stage are known.
    """
    if not any(stage.layers or stage.bubble is not None for stage in stages):
        return None
    wide = columns(width) >= WIDE
    shown = [name for name in FIGURES if any(getattr(stage, name) is not None for stage in stages)]
    table = figure_table(wide, ("stage", "layers"), shown)
    for number, stage in enumerate(stages, 1):
        names = joined_within(ranges(stage.layers), WIDE_NAMES if wide else NARROW_NAMES)
        figures = (FIGURES[name](getattr(stage, name)) for name in shown)
        table.add_row(*map(Text, (str(number), names, *figures)))
    return table


def _percent(share: float) -> str:
    return f"{share:.1%}"


FIGURES: dict[str, Callable[[float], str]] = {"parameters": amount, "bubble": _percent}
