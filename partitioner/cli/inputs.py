"""The files that a command line names: workload, devices, constraints."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from partitioner.base.errors import OptionError
from partitioner.formats.constraints import load_constraints
from partitioner.formats.devices import load_devices, load_transfers
from partitioner.formats.msr import read, workload_of
from partitioner.formats.pipedream import load_pipedream
from partitioner.formats.readers import read_foreign
from partitioner.workload.constraints import Constraints
from partitioner.workload.devices import Devices
from partitioner.workload.graph import Graph
from partitioner.workload.transfers import Transfers
from partitioner.workload.workload import Workload

PROFILE = ".txt"
COUNTS = {"accelerators": "accelerator", "cpus": "cpu"}
PROFILE_OPTIONS = ("bandwidth", "cpu_factor", "inference")


def read_workload(options: argparse.Namespace, planned: Devices | None = None) -> Workload:
    """Read a workload file for the requested devices: JSON, a profile of PipeDream, or another format.

    Devices that a plan is made for, `planned`, take the place of those of the workload.

    Raises
    ------
    WorkloadError
        If a file breaks a rule.
    OptionError
        If options do not go together.
    """
    if _is_profile(options):
        graph, devices = _profile(options, planned)
    else:
        _check_no_profile_options(options)
        foreign = read_foreign(options.workload)
        if foreign is not None:
            return replace(foreign, devices=_devices(options, planned or foreign.devices))
        graph, devices = read(options.workload)
    return workload_of(options.workload, graph, _devices(options, planned or devices))


def read_constraints(
    options: argparse.Namespace, graph: Graph, planned: Constraints | None = None
) -> Constraints:
    """Return the constraints of the file, if one is named, else those of a plan, changed by the options."""
    found = load_constraints(options.constraints, graph) if options.constraints else planned or Constraints()
    wanted: dict[str, Any] = {
        "stages": options.stages,
        "use_all_devices": options.use_all_devices,
        "neighbours_only": options.neighbours_only,
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


def _is_profile(options: argparse.Namespace) -> bool:
    return Path(options.workload).suffix == PROFILE


def _check_no_profile_options(options: argparse.Namespace) -> None:
    given = [name for name in PROFILE_OPTIONS if getattr(options, name) is not None]
    if given:
        raise OptionError(f"--{given[0].replace('_', '-')} is for profiles ({PROFILE} files)")


def _profile(options: argparse.Namespace, planned: Devices | None) -> tuple[Graph, Devices]:
    if options.bandwidth is None:
        raise OptionError("a profile needs --bandwidth, in bytes per second")
    if options.accelerators is None and not options.devices and planned is None:
        raise OptionError("a profile needs --accelerators or --devices")
    if options.cpus and options.cpu_factor is None:
        raise OptionError("a profile needs --cpu-factor for --cpus: it has no times of CPUs")
    workload = load_pipedream(
        options.workload,
        bandwidth=options.bandwidth,
        accelerators=options.accelerators or 1,
        cpus=options.cpus or 0,
        cpu_factor=options.cpu_factor,
        training=not options.inference,
    )
    return workload.graph, workload.devices


def _devices(options: argparse.Namespace, devices: Devices) -> Devices:
    """Return the devices of the file, else those of the workload, changed by the options."""
    sizes = [name for name in (*COUNTS, "memory") if getattr(options, name) is not None]
    if options.devices:
        if sizes:
            raise OptionError(f"--{sizes[0]} and --devices say the same: give one of them")
        devices = load_devices(options.devices)
        return replace(devices, communication=options.communication or devices.communication)
    kinds = devices.kinds
    for option, name in COUNTS.items():
        count = getattr(options, option)
        kinds = tuple(replace(k, count=count) if k.name == name and count is not None else k for k in kinds)
    if options.memory is not None:
        kinds = tuple(replace(k, memory=options.memory) if k.name == "accelerator" else k for k in kinds)
    return replace(devices, kinds=kinds, communication=options.communication or devices.communication)
