"""The files that a command line names: workload, devices, constraints."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import Any

from partitioner.base.errors import OptionError
from partitioner.cli.shared_arguments import PROFILE
from partitioner.evaluation.solution import PlanRecord
from partitioner.exports.expressible import expressible
from partitioner.formats.constraints import load_constraints
from partitioner.formats.devices import load_devices, load_transfers
from partitioner.formats.devices_in_place import changed, check_rate, pooled, with_links
from partitioner.formats.file_formats import PIPEDREAM, FileFormat, recognised
from partitioner.formats.msr import workload_of
from partitioner.formats.plan_record import resolved
from partitioner.formats.readers import read_foreign
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.training_states import NAMES as STATES
from partitioner.workload.training_states import with_training_states
from partitioner.workload.transfers import Transfers
from partitioner.workload.workload import Workload

SIZES = ("accelerators", "memory", "cpus")
MISSING = " = None"
LINKS = ("peer_bandwidth", "exchange_bandwidth", "link_latency")  # options for files that take a bandwidth
_PROFILE_OPTIONS = tuple(
    (argument, argument.keywords.get("dest", argument.name.removeprefix("--").replace("-", "_")))
    for argument in PROFILE.arguments
)


def read_workload(options: argparse.Namespace, planned: Devices | None = None) -> Workload:
    """Read a workload for the requested devices from a file of any format.

    Devices that a plan is made for, `planned`, take the place of those of the workload.

    Raises
    ------
    WorkloadError
        If a file breaks a rule.
    OptionError
        If options do not go together.
    """
    foreign = read_foreign(options.workload)
    if foreign is not None:
        _check_format_options(options, "this file", ())
        graph = with_training_states(foreign.graph, **_given(options, STATES))
        return replace(foreign, graph=graph, devices=chosen_devices(options, planned or foreign.devices))
    file_format, content = recognised(options.workload)
    _check_format_options(options, file_format.name, file_format.options)
    _check_needed(options, file_format, planned)
    given = _given(options, file_format.options)
    if options.peer_bandwidth is not None:
        check_rate("--peer-bandwidth", options.peer_bandwidth)
        given["bandwidth"] = options.peer_bandwidth
    try:
        graph, devices = file_format.read(content, options.workload, **given)
        graph = with_training_states(graph, **_given(options, STATES))
    except OptionError as error:
        raise _as_typed(error, file_format) from error
    devices = chosen_devices(options, planned or devices)
    direct = options.peer_bandwidth is not None and options.route is None
    links = {"exchange_bandwidth": options.exchange_bandwidth, "link_latency": options.link_latency}
    linked = with_links(devices, graph, direct=direct, **links)
    return workload_of(options.workload, graph, linked)


def as_planned(options: argparse.Namespace, record: PlanRecord) -> argparse.Namespace:
    """Return the options by which the file of a plan's workload is read: a batch has the plan's samples."""
    if record.microbatches is None:
        return options
    return argparse.Namespace(**{**vars(options), "microbatches": record.microbatches})


def read_planned(options: argparse.Namespace, record: PlanRecord) -> tuple[Workload, PlanRecord]:
    """Return the workload of a plan's file as the plan says that it is trained, and the plan with its ids.

    Raises
    ------
    PartitionerError
        If a file or an option breaks a rule, or the plan is made for another workload.
    """
    workload = read_workload(as_planned(options, record), record.hardware)
    workload = replace(workload, graph=record.trained(workload.graph))
    return workload, resolved(record, workload.graph, workload.devices)


def read_constraints(
    options: argparse.Namespace, graph: Graph, planned: Constraints | None = None
) -> Constraints:
    """Return the constraints of the file, if one is named, else those of a plan, changed by the options."""
    found = load_constraints(options.constraints, graph) if options.constraints else planned or Constraints()
    if options.expressible is not None:
        found = replace(found, **expressible(options.expressible).as_dict())
    wanted: dict[str, Any] = {
        "stages": options.stages,
        "use_all_devices": options.use_all_devices,
        "neighbours_only": options.neighbours_only,
        "equal_replicas": options.equal_replicas,
    }
    return replace(found, **{name: value for name, value in wanted.items() if value is not None})


def read_transfers(options: argparse.Namespace, planned: Transfers | None = None) -> Transfers | None:
    """Return the transfers of the devices file, else of a plan, changed by the options; None for the default.

    Raises
    ------
    WorkloadError
        If one of them is not sound.
    """
    found = load_transfers(options.devices) if options.devices else planned
    given = {
        "slope": options.link_slope,
        "intercept": options.link_intercept,
        "contention": options.contention,
    }
    wanted: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return replace(found or Transfers(), **wanted) if wanted else found


def format_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of formats of files that the command line gives.

    Raises
    ------
    OptionError
        If it gives bandwidths or latencies of links, which belong to devices and not to a file.
    """
    for name in LINKS:
        if getattr(options, name, None) is not None:
            raise OptionError(
                f"--{name.replace('_', '-')} means nothing to several workloads: use --bandwidth or --devices"
            )
    return _given(options, tuple(name for _, name in _PROFILE_OPTIONS))


def _given(options: argparse.Namespace, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the options of a file's format that the command line gives."""
    found = {name: getattr(options, name, None) for name in names}
    return {name: each for name, each in found.items() if each is not None}


def _as_typed(error: OptionError, file_format: FileFormat) -> OptionError:
    """Return an error whose message begins with an option as it is typed, such as ``--bandwidth``."""
    name, rest = re.fullmatch(r"(\w*)(.*)", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
    flags = {option: argument.name for argument, option in _PROFILE_OPTIONS}
    if name not in file_format.options or name not in flags:
        return error
    if rest.startswith(MISSING):
        return OptionError(f"{file_format.name} needs {flags[name]}{rest.removeprefix(MISSING)}")
    return OptionError(f"{flags[name]}{rest}")


def _check_format_options(options: argparse.Namespace, name: str, known: tuple[str, ...]) -> None:
    """Raise if an option is given that means nothing to the format of the file."""
    for argument, option in _PROFILE_OPTIONS:
        option = "bandwidth" if option in LINKS and "bandwidth" in known else option
        if option not in (*known, *STATES) and getattr(options, option, None) is not None:
            raise OptionError(f"{argument.name} means nothing to {name}")


def _check_needed(options: argparse.Namespace, file_format: FileFormat, planned: Devices | None) -> None:
    """Raise if the file lacks something that the command line must then say."""
    name = file_format.name
    if file_format is PIPEDREAM and options.bandwidth is None and options.peer_bandwidth is None:
        raise OptionError(f"{name} needs --bandwidth, in bytes per second")
    named = options.devices or options.pool or options.accelerators is not None
    if not (file_format.names_devices(options.device) or planned or named):
        raise OptionError(f"{name} needs --accelerators or --devices")
    if file_format is PIPEDREAM and options.cpus and options.cpu_factor is None:
        raise OptionError(f"{name} needs --cpu-factor for --cpus: it has no times of CPUs")


def chosen_devices(options: argparse.Namespace, devices: Devices) -> Devices:
    """Return the devices of the file, else those of a workload or a plan, changed by the options.

    Raises
    ------
    WorkloadError
        If the file breaks a rule.
    OptionError
        If two options say the same.
    """
    sizes = {name: getattr(options, name) for name in SIZES if getattr(options, name) is not None}
    given = [*sizes, *(name for name in ("devices", "pool") if getattr(options, name))]
    if len(given) > 1 and given[-1] not in SIZES:
        raise OptionError(f"--{given[0]} and --{given[-1]} say the same: give one of them")
    devices = load_devices(options.devices) if options.devices else devices
    devices = pooled(devices, options.pool) if options.pool else devices
    models = {name: getattr(options, name) for name in ("communication", "exchange", "route")}
    return changed(devices, **sizes, **models)
