"""What the arguments of a sweep ask for: a spec's file, a folder, or workloads, pools and options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from partitioner.base.argument_types import require_items
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import is_folder
from partitioner.sweeps.pool import DevicePool
from partitioner.sweeps.spec import OWN_DEVICES, SweepSpec, checked_options
from partitioner.sweeps.spec_file import load_spec
from partitioner.sweeps.workloads import swept, workload_files
from partitioner.workload.devices import Devices
from partitioner.workload.workload import Workload

SPEC = ".toml"
AnyWorkload = Workload | str | os.PathLike[str]


def asked_for(
    workloads: AnyWorkload | Sequence[AnyWorkload],
    pools: Sequence[DevicePool | Devices] | None,
    options: Mapping[str, Any] | None,
    format_options: Mapping[str, Any],
) -> SweepSpec:
    """Return the product that the arguments of :func:`partitioner.sweeps.run.sweep` describe.

    Raises
    ------
    WorkloadError, OptionError
        If a file, a pool or an option breaks a rule.
    """
    found = None if pools is None else tuple(map(_pool, require_items("pools", pools)))
    checked = checked_options(options)
    if found == ():
        raise OptionError("pools = []: must not be empty")
    if isinstance(workloads, str | os.PathLike) and Path(workloads).suffix.lower() == SPEC:
        if format_options:
            raise OptionError(f"{next(iter(format_options))} means nothing to a spec, whose workloads say it")
        spec = load_spec(workloads)
        return replace(spec, pools=found or spec.pools, options={**(spec.options or {}), **checked})
    graphs = tuple(swept(each, format_options) for each in _listed(workloads))
    return SweepSpec(graphs, found or OWN_DEVICES, checked)


def _pool(given: object) -> DevicePool:
    if isinstance(given, Devices):
        return DevicePool(devices=given)
    if not isinstance(given, DevicePool):
        raise OptionError(f"pools: {shown(given)}: must be a DevicePool or Devices")
    return given


def _listed(workloads: AnyWorkload | Sequence[AnyWorkload]) -> Iterable[AnyWorkload]:
    """Return the workloads; those of a folder if one is given."""
    if isinstance(workloads, str | os.PathLike):
        return workload_files(Path(workloads)) if is_folder(workloads) else [workloads]
    if isinstance(workloads, Workload):
        return [workloads]
    items = require_items("workloads", workloads)
    if not items:
        raise OptionError("workloads = []: must not be empty")
    return items
