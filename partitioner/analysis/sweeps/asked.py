"""What the arguments of a sweep ask for: a spec's file, a folder, or workloads, pools and options."""

from __future__ import annotations

import glob
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from partitioner.analysis.sweeps.layout_task import AnyTask, LayoutTask, layout_task
from partitioner.analysis.sweeps.pool import DevicePool
from partitioner.analysis.sweeps.task import SweepTask
from partitioner.analysis.sweeps.workloads import SweptGraph, swept, workload_files
from partitioner.base.argument_types import require_items, require_mapping
from partitioner.base.errors import Flaw, OptionError, WorkloadError, one_of, shown
from partitioner.base.files import is_folder, path_name, read_text
from partitioner.formats.devices import load_devices
from partitioner.formats.record import Record, RuleBrokenError
from partitioner.planning.objectives import default_objective, objective_of
from partitioner.planning.option_records import OPTIONS
from partitioner.planning.options import check_values, read_options
from partitioner.planning.request import plain
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
    """Return the product that the arguments of :func:`partitioner.analysis.sweeps.run.sweep` describe.

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
        if spec.layouts and (found or checked):
            raise OptionError(f"{path_name(workloads)}: layouts are given all they need in this file")
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


# Reading of what a sweep shall solve: from a file in TOML, a folder of workloads, or arguments.

FIELDS = ("workloads", "pools", "options", "layouts")
POOL_FIELDS = ("name", "accelerators", "memory", "cpus", "communication", "devices")
TABLES_RULE = "must be tables, each below a line [[{}]]"


def load_spec(path: str | os.PathLike[str]) -> SweepSpec:
    """Return the product that a file in TOML describes; ``docs/sweeps.md`` has its fields.

    Raises
    ------
    WorkloadError
        Naming the file and every field, value and rule that was broken, or the workload that is not sound.
    OptionError
        Naming the file and the option.
    """
    flaws: list[Flaw] = []
    source, folder = path_name(path), Path(path_name(path)).parent
    top = Record(_toml(source), "file", flaws)
    for field in top.others(FIELDS):
        top.note(field, "", f"is not a field; these are {', '.join(FIELDS)}")
    layouts = [each for table in _tables(top, "layouts", False) for each in _layouts(table, folder)]
    if "layouts" in top.data:
        for field in set(FIELDS[:3]) & top.data.keys():
            top.note(field, "", "must not be in a file with layouts, whose tables say everything")
        if flaws:
            raise WorkloadError(flaws, source)
        return SweepSpec((), layouts=tuple(layouts))
    files = [each for table in _tables(top, "workloads", True) for each in _files(table, folder, "file")]
    pools = [pool for table in _tables(top, "pools", False) for pool in _pools(table, folder)]
    options = top.take("options", _table, {}, required=False)
    if flaws:
        raise WorkloadError(flaws, source)
    with _named(source):
        checked = checked_options(options)
    graphs = tuple(swept(file, given) for file, given in files)
    return SweepSpec(graphs, tuple(pools) or OWN_DEVICES, checked)


@contextmanager
def _named(source: str) -> Iterator[None]:
    """Add the name of a file to errors about its options."""
    try:
        yield
    except OptionError as error:
        raise OptionError(f"{source}: options: {error}") from error


def _toml(source: str) -> dict[str, Any]:
    text = read_text(source)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a ValueError also for integers of very many digits
        raise WorkloadError([Flaw("file", "", "", f"is not TOML: {error}")], source) from error


def _table(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RuleBrokenError("must be a table")
    return value


def _tables(top: Record, field: str, required: bool) -> list[Record]:
    """Return the tables of a list of tables; for workloads, a text stands for a table with that file."""

    def convert(value: Any) -> list[dict[str, Any]]:
        items = [
            {"file": each} if isinstance(each, str) and required else each for each in _names_listed(value)
        ]
        if not all(isinstance(each, dict) for each in items):
            raise RuleBrokenError(TABLES_RULE.format(field))
        if not items:
            raise RuleBrokenError("must not be empty")
        return items

    items = top.take(field, convert, [], required)
    return [Record(each, f"{field}[{place}]", top.flaws) for place, each in enumerate(items)]


def _names_listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _files(table: Record, folder: Path, field: str) -> list[tuple[Path, dict[str, Any]]]:
    """Return the files that a field of a table names, each with the other fields."""
    given = {name: value for name, value in table.data.items() if name != field}
    patterns = table.take(field, _patterns, [])
    found = []
    for pattern in patterns:
        files = _matching(folder, pattern) if "*" in pattern else [folder / pattern]
        if not files:
            table.note(field, shown(pattern), "no file has such a name")
        found += [(file, given) for file in files]
    return found


def _matching(folder: Path, pattern: str) -> list[Path]:
    """Return the files whose names match; ``**`` beside other characters, which pathlib refuses, is ``*``."""
    within = os.path.join(glob.escape(str(folder)), pattern)  # noqa: PTH118
    return sorted(Path(name) for name in glob.glob(within, recursive=True))  # noqa: PTH207


def _patterns(value: Any) -> list[str]:
    texts = _names_listed(value)
    if not texts or not all(isinstance(each, str) and each for each in texts):
        raise RuleBrokenError("must be the name of a file, or a list of them; * stands for any characters")
    if any("*" in each and Path(each).is_absolute() for each in texts):
        raise RuleBrokenError("must be a name below the folder of this file if it has a *")
    return texts


def _pools(table: Record, folder: Path) -> list[DevicePool]:
    """Return the product of the values that a table of pools gives."""
    for field in table.others(POOL_FIELDS):
        table.note(field, "", f"is not a field; these are {', '.join(POOL_FIELDS)}")
    chosen = _products(table, {name: value for name, value in table.data.items() if name in POOL_FIELDS})
    return [pool for fields in chosen for pool in _pool_in(table, fields, folder, len(chosen) > 1)]


def _products(table: Record, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the product of the values of some fields of a table, each a value or a list of them."""
    given = {name: _names_listed(value) for name, value in fields.items()}
    for name in (name for name, values in given.items() if not values):
        table.note(name, "[]", "must not be empty")
    return [dict(zip(given, values, strict=True)) for values in product(*given.values())]


def _layouts(table: Record, folder: Path) -> list[LayoutTask]:
    """Return a question for each config and combination of values of a table; flaws are added."""
    found = []
    for file, given in _files(table, folder, "config"):
        for fields in _products(table, given):
            try:
                found.append(layout_task(file, folder, fields))
            except OptionError as error:
                table.note("", "", str(error))
    return found


def _pool_in(table: Record, fields: dict[str, Any], folder: Path, several: bool) -> list[DevicePool]:
    """Return a pool; nothing if a flaw is added. One of several with a name has its changes in the name."""
    try:
        file = fields.get("devices")
        if file is not None:
            fields = fields | {"devices": _devices(file, folder)}
        pool = DevicePool(**fields)
        unnamed = replace(pool, name="")
    except OptionError as error:
        table.note("", "", str(error))
        return []
    return [replace(pool, name=f"{pool.name}: {unnamed.label}") if several and pool.name else pool]


def _devices(file: object, folder: Path) -> Devices:
    if not isinstance(file, str):
        raise OptionError(f"devices = {shown(file)}: must be the name of a file")
    return load_devices(folder / file)


# What a sweep shall solve: the product of workloads, pools of devices and options, checked.


REFUSED = ("workers", "warm_start")  # a task has one core; nodes differ from workload to workload
CHECKED_ELSEWHERE = ("objective", "method", "split", "backend")  # by the check of values
OWN_DEVICES = (DevicePool(),)


@dataclass(frozen=True, eq=False)
class SweepSpec:
    """The product of workloads, pools and sets of options.

    Parameters
    ----------
    workloads
        The graphs.
    pools
        The pools of devices.
    options
        For each option of :func:`partitioner.solve` the values that it takes in turn.
    layouts
        The questions for layouts of models on clusters, in place of workloads.
    """

    workloads: tuple[SweptGraph, ...]
    pools: tuple[DevicePool, ...] = OWN_DEVICES
    options: Mapping[str, Sequence[Any]] | None = None
    layouts: tuple[LayoutTask, ...] = ()

    def __repr__(self) -> str:
        if self.layouts:
            return f"<SweepSpec: {len(self.layouts)} questions for layouts>"
        counts = f"{len(self.workloads)} workloads, {len(self.pools)} pools"
        return f"<SweepSpec: {counts}, {len(self.sets_of_options())} sets of options>"

    def sets_of_options(self) -> list[dict[str, Any]]:
        """Return the sets of options, of which each has an objective."""
        varied = self.options or {}
        given = (dict(zip(varied, values, strict=True)) for values in product(*varied.values()))
        trains = all(each.graph.backward.any() for each in self.workloads)
        return [{"objective": _default_of(options, trains), **options} for options in given]

    def tasks(self) -> Sequence[AnyTask]:
        """Return the tasks: for each workload all pools, for each pool all sets of options.

        Raises
        ------
        WorkloadError, OptionError
            If a pool does not suit a workload.
        """
        if self.layouts:
            return self.layouts
        asked = self.sets_of_options()
        return [
            SweepTask(swept.name, pool.label, swept.content, swept.graph.digest, devices, options)
            for swept in self.workloads
            for pool in self.pools
            for devices in (swept.devices_of(pool),)
            for options in asked
        ]


def _default_of(options: Mapping[str, Any], trains: bool) -> str:
    """Return the objective where none is named, for graphs of which all have a backward pass or not."""
    return default_objective(options.get("method", "auto"), options.get("split"), options, trains)


def checked_options(given: object) -> dict[str, tuple[Any, ...]]:
    """Return the values of each option; a list or a tuple has several, any other value is the only one.

    Raises
    ------
    OptionError
        Naming the option, its value and what it may be.

    Examples
    --------
    >>> checked_options({"objective": ["throughput", "gpipe"], "gap": 0.01})
    {'objective': ('throughput', 'gpipe'), 'gap': (0.01,)}
    """
    options = {} if given is None else given
    require_mapping("options", options, "must be a mapping of names of options to values")
    assert isinstance(options, Mapping)
    varied = {name: _values(name, value) for name, value in options.items()}
    for chosen in SweepSpec((), options=varied).sets_of_options():
        _check_together(chosen)
    return varied


def _values(name: object, value: object) -> tuple[Any, ...]:
    known = [each for each in OPTIONS if each not in REFUSED]
    if name not in known:
        raise OptionError(f"option {shown(name)} is unknown in a sweep: must be {one_of(name, known)}")
    values = tuple(value) if isinstance(value, list | tuple) else (value,)
    if not values:
        raise OptionError(f"{name} = {shown(value)}: must not be empty")
    for each in values:
        OPTIONS[str(name)].check(each)
    return values


def _check_together(options: Mapping[str, Any]) -> None:
    """Raise if options do not go together, before any of the tasks runs."""
    rest = {name: value for name, value in options.items() if name not in CHECKED_ELSEWHERE}
    check_values(**{name: value for name, value in options.items() if name in CHECKED_ELSEWHERE})
    time_limit, gap, seed = (rest.pop(name, OPTIONS[name].default) for name in ("time_limit", "gap", "seed"))
    objective = objective_of(options["objective"], options.get("method", "auto"), rest)
    read_options(objective, rest, time_limit=time_limit, gap=gap, seed=seed, workers=1)
    plain(options)
