"""The fields of a layer in a file: the same for a row of a table and for a JSON object."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from partitioner.base.errors import OptionError, shown
from partitioner.base.sizes import byte_count
from partitioner.formats.record import Record, RuleBrokenError, amount, mapping, text, texts
from partitioner.workload.extras import TIME_UNITS
from partitioner.workload.layer import Layer

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
