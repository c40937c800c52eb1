"""Plans and evaluations as text for people."""

from __future__ import annotations

import io
import shutil
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from partitioner.argument_types import MANY, is_count
from partitioner.critical_table import critical_table
from partitioner.errors import SHOWN_FLAWS, OptionError, shown
from partitioner.evaluation.verdict import DeviceLoad, Evaluation
from partitioner.figures import amount, figure, nearness
from partitioner.methods.method import ANY_DEVICES
from partitioner.timetable import timetable

if TYPE_CHECKING:
    from partitioner.certify import Certificate
    from partitioner.evaluation.schedule import Schedule
    from partitioner.methods.info import MethodInfo
    from partitioner.methods.ip.backends.backend import Capability
    from partitioner.plan import Plan

BAR_WIDTH = 24
WIDE = 128
NARROWEST = 80
WIDEST = 1_000_000
FIGURES = ("load", "compute", "in", "out", "sync", "memory", "full", "nodes", "load %")
UNITS = {"batch": "batch", "makespan": "step"}
OPERATORS = "the critical path, by runs on one device; before: what each run waited for"
AMONG = "optimal (see the note)"
CRITICAL = "* is on the critical path; after: the line whose output or device it waits for"


def plan_table(plan: Plan, width: int | None = None) -> str:
    """The plan as text: what it is worth, then a line for each device in pipeline order."""
    optimal = "optimal" if plan.statistics.get(ANY_DEVICES, plan.bound) >= plan.bound else AMONG
    proof = optimal if plan.status == "optimal" else nearness(plan.value, plan.bound)
    by_operator = plan.execution_order is not None
    unit = unit_of(plan.objective if by_operator or plan.objective != "makespan" else "batch")
    head = (
        f"{plan.objective}, {plan.split} split: {plan.value:.6g} per {unit}, {proof}\n"
        f"lower bound {plan.bound:.6g}; method {plan.method} ({plan.backend}), "
        f"stopped: {plan.stop_reason}, {plan.runtime_seconds:.3g} s"
    )
    notes = [f"note: {note}" for note in plan.notes]
    tables = _tables(plan.devices, plan.stages, plan.schedule, width, by_operator)
    return render([Text(head), *tables, *map(Text, notes)], width)


def evaluation_table(evaluation: Evaluation, width: int | None = None) -> str:
    """An evaluation as text: the value, the verdict, the shape, each device, for latency the schedule."""
    verdict = "is feasible" if evaluation.feasible else "breaks the rules"
    by_operator = evaluation.objective == "makespan"
    unit = unit_of(evaluation.objective)
    head = f"{evaluation.objective}: {evaluation.value:.6g} per {unit}; the placement {verdict}"
    form = evaluation.shape
    parts = f"forward part {_yes(form.forward_convex)}, backward part {_yes(form.backward_convex)}"
    shape = f"shape: {form.name} ({parts})"
    broken = [f"broken: {violation}" for violation in evaluation.violations[:SHOWN_FLAWS]]
    hidden = len(evaluation.violations) - SHOWN_FLAWS
    broken += [f"broken: ... and {hidden} more"] if hidden > 0 else []
    tables = _tables(evaluation.loads, evaluation.shape.order, evaluation.schedule, width, by_operator)
    notes = [f"note: {note}" for note in evaluation.notes]
    return render([Text(f"{head}\n{shape}"), *tables, *map(Text, broken), *map(Text, notes)], width)


def _tables(
    loads: Sequence[DeviceLoad],
    order: Sequence[str],
    schedule: Schedule | None,
    width: int | None,
    by_operator: bool,
) -> list[RenderableType]:
    """A line for each device, and for latency the schedule, of operators one by one their critical path."""
    devices = _device_table(loads, order, width)
    if schedule is None:
        return [devices]
    if by_operator:
        return [devices, "", Text(OPERATORS), critical_table(schedule, wide=columns(width) >= WIDE)]
    return [devices, "", timetable(schedule, wide=columns(width) >= WIDE), CRITICAL]


def certificate_text(certificate: Certificate) -> str:
    """What is proven of a placement, in a line or two."""
    best = certificate.best
    better = f"\na better one is known: {best.value:.6g}" if best.value < certificate.value else ""
    return (
        f"no {best.split} split is better than {certificate.bound:.6g}: this one is "
        f"{nearness(certificate.value, certificate.bound, 'best')} "
        f"(method {best.method}, {best.runtime_seconds:.3g} s){better}"
    )


def render(parts: Sequence[RenderableType], width: int | None = None) -> str:
    """Plain text of at most `width` columns (but at least 80), by default the terminal's."""
    console = Console(
        file=io.StringIO(), width=max(NARROWEST, columns(width)), color_system=None, highlight=False
    )
    for part in parts:
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().strip("\n").splitlines()
    return "\n".join(line.rstrip() for line in lines)


def columns(width: int | None) -> int:
    """The width, by default the terminal's."""
    if width is not None and not is_count(width):
        raise OptionError(f"width = {shown(width)}: must be an integer from 1 to {MANY:,}, or None")
    return shutil.get_terminal_size().columns if width is None else min(width, WIDEST)


def unit_of(objective: str) -> str:
    """What the objective's value is the time of; a makespan without a pipeline is that of a step."""
    return UNITS.get(objective, "sample")


def _yes(convex: bool) -> str:
    return "convex" if convex else "not convex"


def methods_table(methods: Sequence[MethodInfo]) -> str:
    """The methods as text: what each can be asked for and what it guarantees."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for name in ("objectives", "splits", "backends", "guarantee"):
        table.add_column(name, overflow="fold", ratio=3 if name == "guarantee" else None)
    for info in methods:
        lists = (", ".join(names) for names in (info.objectives, info.splits, info.backends))
        table.add_row(info.name, *lists, info.guarantee)
    return render([table])


def backends_table(backends: Sequence[Capability], missing: Collection[str]) -> str:
    """The solvers of integer programs as text: is each here, and what can it do?"""
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("backend", "here", "cores", "solutions"):
        table.add_column(name, overflow="fold")
    for backend in backends:
        here = f"no: {backend.remedy}" if backend.name in missing else "yes"
        told = "as it finds them" if backend.streams else "at its end"
        table.add_row(backend.name, Text(here), "several" if backend.parallel else "one", told)
    return render([table])


def _device_table(devices: Sequence[DeviceLoad], stages: Sequence[str], width: int | None) -> Table:
    """A line for each stage and each idle device; where weights are exchanged, that replaces `load %`."""
    wide = columns(width) >= WIDE
    left_out = "load %" if any(device.sync > 0 for device in devices) else "sync"
    table = Table(box=None, padding=(0, 3 if wide else 1, 0, 0))
    table.add_column("stage", no_wrap=True)
    table.add_column("device", overflow="fold")
    names = [name for name in FIGURES if name != left_out]
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)
    if wide:
        table.add_column("of the largest load", no_wrap=True)
    place = {name: number for number, name in enumerate(stages, 1)}
    copies = Counter(device.replica_of for device in devices)
    largest = max(device.load for device in devices)
    leads = [device for device in devices if device.replica_of is None]
    for device in sorted(leads, key=lambda device: place.get(device.name, len(place) + 1)):
        share = device.load / largest if largest > 0 else 0.0
        figures = _figures(device, share)
        titles = str(place.get(device.name, "-")), _title(device.name, 1 + copies[device.name])
        bar = ["█" * round(BAR_WIDTH * share)] if wide else []
        table.add_row(*titles, *(figures[name] for name in names), *bar)
    return table


def _title(name: str, devices: int) -> str:
    return name if devices == 1 else f"{name} x{devices}"


def _figures(device: DeviceLoad, share: float) -> dict[str, str]:
    """What a line says, by column."""
    times = sum(device.compute), sum(device.transfer_in), sum(device.transfer_out)
    texts = (
        *map(figure, (device.load, *times, device.sync)),
        *(amount(device.memory), fullness(device), str(device.nodes), f"{share:.0%}"),
    )
    return dict(zip(FIGURES, texts, strict=True))


def fullness(device: DeviceLoad) -> str:
    """The share of the memory limit that is used; empty without a limit."""
    if not device.memory_limit:
        return ""
    share = device.memory / device.memory_limit
    return f"{share:.0%}" if share < 9.995 else ">999%"
