"""A task of a sweep that ranks the layouts of a language model on a cluster."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from partitioner.analysis.sweeps.row import FEASIBLE, KEY_LENGTH, LAYOUT, OPTIMAL, SweepRow
from partitioner.analysis.sweeps.task import SweepTask
from partitioner.base.errors import OptionError
from partitioner.base.files import read_json
from partitioner.base.units import byte_count
from partitioner.estimation.named_devices import SUFFIX, named_device
from partitioner.evaluation.text.figures import relative_gap
from partitioner.formats.llm.layout_options import LAYOUT_OPTIONS, LayoutOptions, numbers_of, parallelism_of
from partitioner.planning.layouts.plan import plan
from partitioner.planning.layouts.question import asked_question
from partitioner.planning.layouts.result import LayoutPlan
from partitioner.planning.option_records import OPTIONS

ASKED = tuple(name for name in inspect.signature(asked_question).parameters if name != "options")[1:]
DEFAULTS = {name: each.default for name, each in inspect.signature(plan).parameters.items()}
FIELDS = (*ASKED, "time_limit", *LAYOUT_OPTIONS)
AMOUNTS = ("memory", "peer", "network")  # also as texts, such as "80GB" and "25GB/s"
IN_POOL = ("gpus", "device")


@dataclass(frozen=True, eq=False)
class LayoutTask:
    """A question for the layouts of a model, in the form that is sent to a worker.

    Parameters
    ----------
    workload
        The title of the config.
    config
        What the config holds.
    asked
        The keywords of :func:`partitioner.plan`.
    """

    workload: str
    config: dict[str, Any]
    asked: Mapping[str, Any]

    @property
    def pool(self) -> str:
        """The GPUs in words."""
        return " x ".join(str(each) for each in (self.asked.get("gpus"), self.asked["device"].name) if each)

    @property
    def given(self) -> dict[str, Any]:
        """The keywords beside the GPUs that are not the default."""
        return {
            name: value
            for name, value in self.asked.items()
            if name not in IN_POOL and value != DEFAULTS.get(name)
        }

    @cached_property
    def key(self) -> str:
        """The hash of the config, the GPUs and the keywords."""
        pool = [self.asked.get("gpus"), asdict(self.asked["device"])]
        text = json.dumps([LAYOUT, self.config, pool, sorted(self.given.items())], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    def row(self, status: str, **found: Any) -> SweepRow:
        """Return the row of the task with its status and what was found."""
        count = found.pop("devices", self.asked.get("gpus") or 0)
        return SweepRow(self.key, self.workload, self.pool, count, LAYOUT, status, self.given, **found)

    def solve(self) -> tuple[str, dict[str, Any], LayoutPlan]:
        """Return the status of the fastest layout, its figures for the row, and all layouts found."""
        found = plan(self.config, **self.asked)
        best, gpus = found.best, found.cluster.gpus
        proven = found.complete and relative_gap(best.seconds, found.bound) <= 0
        figures = {name: value for name, value in asdict(best).items() if name in FIGURES}
        return (
            OPTIMAL if proven else FEASIBLE,
            {
                "value": best.seconds,
                "bound": found.bound,
                "method": "plan",
                "stop_reason": "complete" if found.complete else "time_limit",
                "devices": gpus,
                "used": gpus,
                "time_unit": "s",
                "figures": {LAYOUT: best.layout.name, **figures},
            },
            found,
        )


AnyTask = SweepTask | LayoutTask
FIGURES = ("tokens_per_second", "tflops_per_gpu", "mfu", "memory", "bubble", "exposed")


def layout_task(file: Path, folder: Path, fields: Mapping[str, Any]) -> LayoutTask:
    """Return the question of the fields of a spec for the config in a file, checked.

    Parameters
    ----------
    file
        The config.
    folder
        The folder to which a device's file is relative.
    fields
        The keywords of :func:`partitioner.plan`.

    Raises
    ------
    WorkloadError, OptionError
        If the config, a device's file or a field breaks a rule.
    """
    for name in fields:
        if name not in FIELDS:
            raise OptionError(f"{name}: is not a field; these are config, {', '.join(FIELDS)}")
    for name in ("device", "global_batch", "sequence"):
        if name not in fields:
            raise OptionError(f"{name}: is missing")
    asked = {name: _amount(value) if name in AMOUNTS else value for name, value in fields.items()}
    device = asked["device"]
    named = named_device(folder / device if str(device).endswith(SUFFIX) else device)
    asked["device"] = replace(named, peak=dict(named.peak))  # which can be sent to a worker
    options: LayoutOptions = {name: asked[name] for name in LAYOUT_OPTIONS if name in asked}  # type: ignore[assignment]
    question = asked_question(file, **{name: (DEFAULTS | asked)[name] for name in ASKED}, options=options)
    question.cluster.device.speed(question.dtype)
    parallelism_of(options), numbers_of(question.dtype, True, options)
    OPTIONS["time_limit"].check(asked.get("time_limit"))
    title = file.parent.name if file.stem == "config" and file.parent.name else file.stem
    return LayoutTask(title, read_json(file), asked)


def _amount(value: Any) -> Any:
    return byte_count(value.strip().removesuffix("/s")) if isinstance(value, str) else value
