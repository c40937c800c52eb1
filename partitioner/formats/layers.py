"""Reading of layers from a CSV table or a JSON file, as a graph.

A JSON file holds ``layers``, a list of objects with the fields of :class:`partitioner.Layer`, and may hold
``timeUnit`` (``"ms"``). Times of a layer may be an object by kind of device; bytes may be texts such as
``"16MiB"``.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from partitioner.base.errors import Flaw, OptionError, WorkloadError, shown
from partitioner.base.units import byte_count
from partitioner.formats.record import Record, RuleBrokenError, amount, listing, mapping, text, texts
from partitioner.workload.extras import TIME_UNITS
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


# The rows of a table of layers in a CSV file, as records.
#
# The first line names the columns: fields of a layer, and ``forward`` or ``backward`` with a kind of
# device after a colon, such as ``forward:gpu``. A column of times may end in its unit, ``forward
# [us]``. An empty cell leaves the field out. Names in ``inputs`` are separated by semicolons, ``-``
# stands for no input; ``shared`` lists entries ``name=bytes``. Lines that begin with ``#`` are
# comments.

COLUMN = re.compile(r"([^:\[\]]*?)\s*(?::\s*([^\[\]]+?)\s*)?(?:\[(.*)\])?")
NONE, SEPARATOR, COMMENT = "-", ";", "#"


class TableColumn:
    """A column of a table: the field of its cells, a kind of device, and the ms of its unit of time."""

    def __init__(self, title: str, where: str, flaws: list[Flaw]) -> None:
        self.title = title.strip()
        found = COLUMN.fullmatch(self.title)
        self.field: str = found[1] if found else ""
        self.kind: str | None = found[2] if found else None
        unit: str | None = found[3] if found else None
        self.unit = TIME_UNITS.get(unit or "ms", 1.0)
        timed = self.field in TIMES
        if not self.field or (self.kind is not None and not timed):
            rule = "must be a field, or a time with its kind of device, such as forward:gpu"
            flaws.append(Flaw(where, "column", shown(self.title), rule))
        elif unit is not None and not (timed and unit in TIME_UNITS):
            rule = f"only times have a unit in brackets, one of {', '.join(TIME_UNITS)}"
            flaws.append(Flaw(where, "column", shown(self.title), rule))

    def enter(self, cell: str, data: dict[str, Any]) -> None:
        """Add the value of a cell to the fields of its row; an empty one is left out."""
        plain = cell.strip()
        if not plain:
            return
        if self.field in TIMES:
            value = _scaled(plain, self.unit)
            if self.kind is None:
                data[self.field] = value
            else:
                data.setdefault(self.field, {})[self.kind] = value
        elif self.field == "inputs":
            data["inputs"] = [] if plain == NONE else [name.strip() for name in plain.split(SEPARATOR)]
        elif self.field == "shared":
            data["shared"] = _entries(plain)
        else:
            data[self.field] = _number(plain) if self.field in SIZES else plain


def rows(text: str, flaws: list[Flaw]) -> Iterator[tuple[int, Record]]:
    """Yield the line and the record of every row, with times in ms; flaws are added to `flaws`."""
    columns: list[TableColumn] = []
    for line, cells in _lines(text, flaws):
        if columns:
            record = _record(cells, columns, f"line {line}", flaws)
            yield from [] if record is None else [(line, record)]
            continue
        columns = _columns(cells, f"line {line}", flaws)
        if flaws:
            return


def _lines(text: str, flaws: list[Flaw]) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is neither empty nor a comment."""
    lines = csv.reader(text.splitlines(), strict=True, skipinitialspace=True)
    try:
        for cells in lines:
            if any(map(str.strip, cells)) and not cells[0].lstrip().startswith(COMMENT):
                yield lines.line_num, cells
    except csv.Error as error:
        flaws.append(Flaw(f"line {lines.line_num}", "", "", f"is not CSV: {error}"))


def _record(
    cells: Sequence[str], columns: Sequence[TableColumn], where: str, flaws: list[Flaw]
) -> Record | None:
    """Return the record of a row; None if it has too many cells, which adds a flaw."""
    if len(cells) > len(columns):
        rule = f"must have at most {len(columns)} cells, as the line of the columns has"
        flaws.append(Flaw(where, "", f"{len(cells)} cells", rule))
        return None
    data: dict[str, Any] = {}
    for column, cell in zip(columns, cells, strict=False):
        column.enter(cell, data)
    return Record(data, where, flaws)


def _columns(titles: list[str], where: str, flaws: list[Flaw]) -> list[TableColumn]:
    columns = [TableColumn(title, where, flaws) for title in titles]
    seen: set[tuple[str, str | None]] = set()
    for column in columns:
        if (column.field, column.kind) in seen:
            flaws.append(Flaw(where, "column", shown(column.title), "is given twice"))
        seen.add((column.field, column.kind))
    for time in TIMES:
        if {(time, None)} < {key for key in seen if key[0] == time}:
            flaws.append(Flaw(where, "column", shown(time), "must name its kind, as other columns do"))
    return columns


def _number(text: str) -> Any:
    """Return the number that a cell holds; the text itself if it is none."""
    try:
        return float(text)
    except ValueError:
        return text


def _scaled(text: str, unit: float) -> Any:
    value = _number(text)
    return value * unit if isinstance(value, float) else value


def _entries(text: str) -> Any:
    """Return the values of entries ``name=value``; the text itself if it has none."""
    parts = [entry.partition("=") for entry in text.split(SEPARATOR) if entry.strip()]
    if not all(sign for _, sign, _ in parts):
        return text
    return {name.strip(): _number(value.strip()) for name, _, value in parts}


# The fields of a layer in a file: the same for a row of a table and for a JSON object.


TIMES = ("forward", "backward")
SIZES = ("parameters", "activations", "output", "gradients", "optimizer", "workspace", "size", "cache")
FIELDS = ("name", *TIMES, *SIZES, "inputs", "shared")
ALIKE = 0.8  # similarity by difflib from which an unknown field counts as misspelled


def read_layer(record: Record, unit: float) -> Layer | None:
    """Return the layer of a record, whose times are in units of `unit` ms; None if flaws are added.

    Fields of other names are kept in the layer's nodes; one that is spelled almost like a known one is
    refused.
    """
    before = len(record.flaws)
    name = record.take("name", filled_text, "")
    given = {field: record.take(field, times_in(unit), None, field == "forward") for field in TIMES}
    sizes = {field: record.take(field, size, None, False) for field in SIZES}
    inputs = record.take("inputs", _inputs, None, False)
    shared = record.take("shared", sizes_by_name, {}, False)
    more = record.others(FIELDS)
    for field in more:
        near = get_close_matches(field, FIELDS, 1, ALIKE)
        if near and field.lower() != near[0]:
            record.note(field, "", f"is not a field; did you mean {near[0]}?")
    if len(record.flaws) > before:
        return None
    known = {field: value for field, value in sizes.items() if value is not None}
    return Layer(name, **given, **known, inputs=inputs, shared=shared, more=more)  # type: ignore[arg-type]


def _inputs(value: Any) -> list[str] | dict[str, float]:
    return sizes_by_name(value) if isinstance(value, dict) else texts(value)


def time_unit(value: Any) -> float:
    """Return the milliseconds of a unit of time by its name."""
    if not isinstance(value, str) or value not in TIME_UNITS:
        raise RuleBrokenError(f"must be a unit of time, {', '.join(TIME_UNITS)}")
    return TIME_UNITS[value]


def filled_text(value: Any) -> str:
    """Return a JSON string that is not empty."""
    if not text(value):
        raise RuleBrokenError("must be a text that is not empty")
    return text(value)


def size(value: Any) -> float:
    """Return a number of bytes: a JSON number, or a text such as ``16MiB``."""
    if not isinstance(value, str):
        return amount(value)
    try:
        return byte_count(value)
    except OptionError as error:
        raise RuleBrokenError(str(error).removeprefix(f"{shown(value)}: ")) from None


def sizes_by_name(value: Any) -> dict[str, float]:
    """Return the numbers of bytes in a JSON object."""
    return {filled_text(name): size(nbytes) for name, nbytes in mapping(value).items()}


def times_in(unit: float) -> Callable[[Any], float | dict[str, float]]:
    """Return a converter of times in that unit: a number, or an object of numbers by kind of device."""

    def convert(value: Any) -> float | dict[str, float]:
        if isinstance(value, dict):
            return {filled_text(kind): amount(time) * unit for kind, time in value.items()}
        return amount(value) * unit

    return convert
