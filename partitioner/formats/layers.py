"""Reading of layers from a CSV table or a JSON file, as a graph.

A JSON file holds ``layers``, a list of objects with the fields of :class:`partitioner.Layer`, and may hold
``timeUnit`` (``"ms"``). Times of a layer may be an object by kind of device; bytes may be texts such as
``"16MiB"``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError, shown
from partitioner.formats.layer_fields import read_layer, time_unit
from partitioner.formats.layer_table import rows
from partitioner.formats.record import Record, listing
from partitioner.workload.graph import Graph
from partitioner.workload.layer import Layer

TOP_FIELDS = ("timeUnit", "layers")


def table_graph(text: str, source: str, **options: Any) -> Graph:
    """Return the graph of the layers in a CSV table; `options` are those of :meth:`Graph.chain`.

    Raises
    ------
    WorkloadError
        Naming the file and every line, field, value and rule that was broken.
    """
    flaws: list[Flaw] = []
    found = [(f"line {line}", read_layer(record, 1.0)) for line, record in rows(text, flaws)]
    return _graph(found, flaws, source, options)


def document_graph(content: Any, source: str, **options: Any) -> Graph:
    """Return the graph of the layers in the content of a JSON file.

    Parameters and errors are those of :func:`table_graph`.
    """
    flaws: list[Flaw] = []
    top = Record(content, "file", flaws)
    unit = top.take("timeUnit", time_unit, 1.0, required=False)
    for name in top.others(TOP_FIELDS):
        top.note(name, "", f"is not a field; these are {', '.join(TOP_FIELDS)}")
    records = [Record(one, _place(i, one), flaws) for i, one in enumerate(top.take("layers", listing, []))]
    return _graph([(record.where, read_layer(record, unit)) for record in records], flaws, source, options)


def _place(position: int, data: Any) -> str:
    named = isinstance(data, dict) and isinstance(data.get("name"), str)
    return f"layers[{position}]" + (f" {shown(data['name'])}" if named else "")


def _graph(
    found: list[tuple[str, Layer | None]], flaws: list[Flaw], source: str, options: dict[str, Any]
) -> Graph:
    """Return the graph of layers, each with its place in the file."""
    layers = [layer for _, layer in found if layer is not None]
    if not found and not flaws:
        flaws.append(Flaw("file", "layers", "", "there must be at least one"))
    if flaws:
        raise WorkloadError(flaws, source)
    places = {f"layer {shown(layer.name)}": place for place, layer in found if layer is not None}
    try:
        return Graph.chain(layers, **options)
    except WorkloadError as error:
        named = [replace(flaw, where=places.get(flaw.where, flaw.where)) for flaw in error.flaws]
        raise WorkloadError(named, source) from error
