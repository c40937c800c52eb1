"""The formats of files that this package reads as a graph, and which of them a file has."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from partitioner.base.argument_types import check_word
from partitioner.base.errors import OptionError, shown
from partitioner.base.files import is_folder, path_name, read_json, read_text
from partitioner.formats.devices_in_place import one_accelerator
from partitioner.formats.hugging_face import config_graph
from partitioner.formats.layers import document_graph, table_graph
from partitioner.formats.llm.layout_options import LAYOUT_OPTIONS
from partitioner.formats.metis import metis_graph
from partitioner.formats.msr import read_native
from partitioner.formats.onnx.graph import onnx_graph
from partitioner.formats.pipedream import load_pipedream
from partitioner.formats.piper import piper_graph
from partitioner.formats.profile_folder import folder_graph
from partitioner.formats.sailor import is_by_batch, sailor_graph
from partitioner.formats.saved import read_saved
from partitioner.workload.devices import Devices
from partitioner.workload.extras import TIME_UNITS, Extras
from partitioner.workload.graph import Graph

TABLE, PROFILE, MODEL = ".csv", ".txt", ".onnx"
PIPER_OPTIONS = ("bandwidth", "training", "backward_share", "degree", "option", "time_unit")
LAYER_OPTIONS = ("bandwidth", "training", "microbatches")


@dataclass(frozen=True)
class FileFormat:
    """A format of files.

    Parameters
    ----------
    name
        What a file of this format is called in messages, such as ``"a table of layers"``.
    options
        What a caller may say in addition to the file.
    read
        A function of the parsed content, the file's name and the options that returns the graph, and
        devices: those of the file, or one accelerator for a format that names none.
    has_devices
        Whether the file says how many devices there are.
    """

    name: str
    options: tuple[str, ...]
    read: Callable[..., tuple[Graph, Devices]]
    has_devices: bool = False

    def names_devices(self, device: str | Sequence[str] | None) -> bool:
        """Whether the file says how many devices there are, or the option names one of each kind."""
        return self.has_devices or (device is not None and not isinstance(device, str))


def recognised(path: str | os.PathLike[str]) -> tuple[FileFormat, Any]:
    """Return the format of a file and the file's content, parsed if it is JSON.

    Raises
    ------
    WorkloadError
        If the file cannot be read, or is not JSON although its suffix names no other format.
    """
    if is_folder(path):
        return FOLDER, None
    suffix = Path(path_name(path)).suffix.lower()
    if suffix == PROFILE:
        return PIPEDREAM, None
    if suffix == MODEL:
        return ONNX_MODEL, None
    if suffix == TABLE:
        return LAYER_TABLE, read_text(path)
    content = read_json(path)
    fields = content.keys() if isinstance(content, dict) else ()
    if "layers" in fields and "nodes" not in fields:
        return LAYERS, content
    if {"model_type", "architectures"} & set(fields):
        return CONFIG, content
    if "maxMemoryPerDevice" in fields:
        return PIPER, content
    if fields and is_by_batch(content):
        return SAILOR, content
    if {"execution_time", "execution_memory"} & set(fields):
        return METIS, content
    return (SAVED if "devices" in fields and "maxFPGAs" not in fields else NATIVE), content


def _read_profile(content: None, source: str, **options: Any) -> tuple[Graph, Devices]:
    workload = load_pipedream(source, **{"bandwidth": None, **options}, accelerators=1)
    return workload.graph, workload.devices


def _read_table(content: str, source: str, **options: Any) -> tuple[Graph, Devices]:
    graph = table_graph(content, source, **options)
    return graph, one_accelerator(graph)


def _read_layers(content: Any, source: str, **options: Any) -> tuple[Graph, Devices]:
    graph = document_graph(content, source, **options)
    return graph, one_accelerator(graph)


def _read_native(content: Any, source: str, time_unit: str | None = None) -> tuple[Graph, Devices]:
    graph, devices = read_native(content, source)
    return with_time_unit(graph, time_unit), devices


def _read_saved(
    content: Any, source: str, time_unit: str | None = None, phases: Mapping[str, float] | None = None
) -> tuple[Graph, Devices]:
    graph, devices = read_saved(content, source, phases)
    return with_time_unit(graph, time_unit), devices


NATIVE = FileFormat("a workload file", ("time_unit",), _read_native, has_devices=True)
SAVED = FileFormat("a workload file", ("time_unit", "phases"), _read_saved, has_devices=True)
PIPEDREAM = FileFormat("a profile", ("bandwidth", "training", "cpu_factor", "trimmed"), _read_profile)
LAYER_TABLE = FileFormat("a table of layers", LAYER_OPTIONS, _read_table)
CONFIG = FileFormat(
    "a model's config",
    (
        *("sequence", "batch", "context", "device", "dtype", "efficiency", "bandwidth", "training"),
        *("microbatches", "predictors", "generate", "phases", "ways", "measured", *LAYOUT_OPTIONS),
    ),
    config_graph,
)
ONNX_MODEL = FileFormat(
    "an ONNX model", ("device", "dtype", "efficiency", "bandwidth", "dims", "times"), onnx_graph
)
METIS = FileFormat("a profile of Metis", ("bandwidth", "training", "backward_share"), metis_graph)
PIPER = FileFormat("an input of Piper", PIPER_OPTIONS, piper_graph, has_devices=True)
SAILOR = FileFormat("a profile of Sailor", ("batch", *PIPER_OPTIONS), sailor_graph)
FOLDER = FileFormat(
    "a folder of profiles",
    ("batch", "degree", "bandwidth", "training", "backward_share"),
    folder_graph,
    has_devices=True,
)
LAYERS = FileFormat("a file of layers", LAYER_OPTIONS, _read_layers)


# The unit of the times in a workload file that does not say one.


def with_time_unit(graph: Graph, unit: str | None) -> Graph:
    """Return a graph whose times are in a unit; the graph itself for None.

    Raises
    ------
    OptionError
        If the unit is unknown, or the file of the graph says another one.

    Examples
    --------
    >>> graph = Graph.from_arrays({"accelerator": [1.0]})
    >>> with_time_unit(graph, "ms").extras.time_unit
    'ms'
    """
    if unit is None:
        return graph
    check_word("time_unit", unit, tuple(TIME_UNITS))
    stated = graph.extras.time_unit
    if stated not in ("", unit):
        raise OptionError(f"time_unit = {shown(unit)}: the file says {shown(stated)}")
    extras = Extras({**graph.extras.top, "timeUnit": unit}, graph.extras.nodes, graph.extras.edges)
    return replace(graph, extras=extras)
