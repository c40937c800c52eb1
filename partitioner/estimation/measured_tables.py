"""Tables of measured operations in the format of NVIDIA's aiconfigurator and its successor aisimulate.

A folder has the tables of one system: ``gemm``, ``context_attention``, ``generation_attention``, ``moe``,
``nccl`` and ``custom_allreduce``, each a parquet file with a column for each size and one for the time in
milliseconds. The packages ``aiconfigurator`` and ``aisimulate`` have such folders below ``systems/data``.
pyarrow reads them (the extra ``parquet``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.base.errors import BackendUnavailable, Flaw, WorkloadError
from partitioner.base.files import path_name
from partitioner.estimation.device_operations import (
    AttentionScores,
    Collective,
    DeviceOperation,
    ExpertProducts,
    Product,
)
from partitioner.estimation.named_devices import BYTES
from partitioner.workload.graph import Floats

Columns = Mapping[str, NDArray[Any]]
LATENCY = "latency"
ROUTING = {"power_law_1.01": "power_law", "balanced": "balanced"}
DTYPES = {
    "bfloat16": "bfloat16",
    "half": "float16",
    "float16": "float16",
    "int8": "int8",
    "fp8": "float8",
    "fp8_block": "float8_block",
    "nvfp4": "float4",
}
COLLECTIVE_NAMES = {
    "all_reduce": "all_reduce",
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "alltoall": "all_to_all",
}


@dataclass(frozen=True, eq=False)
class Measured:
    """Measured times of one kind of operation with one type of numbers.

    Parameters
    ----------
    operation
        The operation, whose sizes are arrays with an entry for each measurement.
    dtype
        The type of numbers.
    time
        Milliseconds, shape (measurements,).
    """

    operation: DeviceOperation | Collective
    dtype: str
    time: Floats


def read_operation_tables(folder: str | os.PathLike[str]) -> list[Measured]:
    """Return the measurements in the tables of one system.

    Rows without a time, and those with a type of numbers that no named device has, are left out. An operation
    that several kernels were measured for has the time of each.

    Parameters
    ----------
    folder
        The folder, such as ``systems/data/h100_sxm/vllm/0.24.0``.

    Raises
    ------
    WorkloadError
        If the folder has no such table, or a table lacks a column.
    BackendUnavailable
        If pyarrow is not installed.
    """
    paths = {name: Path(folder) / f"{name}.parquet" for name in READERS}
    found = {name: path for name, path in paths.items() if path.is_file()}
    if not found:
        rule = f"must have one of the tables {', '.join(path.name for path in paths.values())}"
        raise WorkloadError([Flaw("folder", "", "", rule)], path_name(folder))
    return [one for name, path in found.items() for one in _read(path, READERS[name])]


def _read(path: Path, reader: Callable[[Columns], Iterator[Measured]]) -> list[Measured]:
    try:
        from pyarrow import parquet
    except ImportError:
        raise BackendUnavailable(
            "tables of operations need pyarrow: pip install dnn-partitioner[parquet]"
        ) from None
    table = parquet.read_table(path)
    columns = {name: table[name].to_numpy() for name in table.column_names}
    try:
        sound = np.isfinite(columns[LATENCY])
        return list(reader({name: values[sound] for name, values in columns.items()}))
    except KeyError as missing:
        rule = "a table of measured operations must have this column"
        raise WorkloadError([Flaw("file", str(missing.args[0]), "", rule)], path_name(path)) from None


def _by_type(columns: Columns, name: str) -> Iterator[tuple[str, Columns]]:
    """Yield the known types of numbers in a column, and the rows of each."""
    for given, dtype in DTYPES.items():
        chosen = columns[name] == given
        if chosen.any():
            yield dtype, {column: values[chosen] for column, values in columns.items()}


def _floats(columns: Columns, *names: str) -> list[Floats]:
    return [columns[name].astype(np.float64) for name in names]


def _products(columns: Columns) -> Iterator[Measured]:
    for dtype, rows in _by_type(columns, "gemm_dtype"):
        m, n, k = _floats(rows, "m", "n", "k")
        yield Measured(Product(m, n, k), dtype, rows[LATENCY])


def _prompts(columns: Columns) -> Iterator[Measured]:
    yield from _attention(columns, "isl", None)


def _generation(columns: Columns) -> Iterator[Measured]:
    yield from _attention(columns, None, "step")


def _attention(columns: Columns, queries: str | None, context: str | None) -> Iterator[Measured]:
    for dtype, rows in _by_type(columns, "kv_cache_dtype"):
        count = len(rows[LATENCY])
        window = rows.get("window_size", np.zeros(count))
        for chosen in (window == 0, window > 0):
            if not chosen.any():
                continue
            part = {name: values[chosen] for name, values in rows.items()}
            batch, heads, kv_heads, size = _floats(
                part, "batch_size", "num_heads", "num_key_value_heads", "head_dim"
            )
            new = np.ones(len(batch)) if queries is None else part[queries].astype(np.float64)
            before = np.zeros(len(batch)) if context is None else part[context].astype(np.float64)
            operation = AttentionScores(
                batch, new, before, heads, kv_heads, size, size, window[chosen].astype(np.float64)
            )
            yield Measured(operation, dtype, part[LATENCY])


def _experts(columns: Columns) -> Iterator[Measured]:
    """Yield each routing apart, of balanced ones only experts that are all on one device.

    Where several devices divide them, the measured kernel was given the rows of all of these and skips those
    of others, which no device has to whom only its own rows are sent.
    """
    alone = columns["moe_ep_size"] == 1
    for given, routing in ROUTING.items():
        chosen = (columns["distribution"] == given) & (alone | (routing != "balanced"))
        yield from _routed({name: values[chosen] for name, values in columns.items()}, routing)


def _routed(columns: Columns, routing: str) -> Iterator[Measured]:
    for dtype, rows in _by_type(columns, "moe_dtype"):
        names = (
            "num_tokens",
            "topk",
            "num_experts",
            "moe_ep_size",
            "moe_tp_size",
            "hidden_size",
            "inter_size",
        )
        tokens, top, count, apart, shards, hidden, width = _floats(rows, *names)
        operation = ExpertProducts(
            tokens * top / apart, count / apart, hidden, width / shards, apart, routing=routing
        )
        yield Measured(operation, dtype, rows[LATENCY])


def _collectives(columns: Columns) -> Iterator[Measured]:
    """Sizes of messages are in numbers."""
    for dtype, rows in _by_type(columns, "nccl_dtype"):
        for given, name in COLLECTIVE_NAMES.items():
            chosen = rows["op_name"] == given
            gpus, size = _floats({name: rows[name][chosen] for name in rows}, "num_gpus", "message_size")
            if chosen.any():
                yield Measured(Collective(name, gpus, size * BYTES[dtype]), dtype, rows[LATENCY][chosen])


def _captured(columns: Columns) -> Iterator[Measured]:
    """Sizes of messages are in numbers; rows of kernels that are launched one by one are left out."""
    for dtype, rows in _by_type(columns, "allreduce_dtype"):
        chosen = np.char.endswith(rows["kernel_source"].astype(str), "_graph")
        gpus, size = _floats({name: rows[name][chosen] for name in rows}, "num_gpus", "message_size")
        yield Measured(
            Collective("all_reduce", gpus, size * BYTES[dtype], captured=True), dtype, rows[LATENCY][chosen]
        )


READERS: Mapping[str, Callable[[Columns], Iterator[Measured]]] = {
    "gemm": _products,
    "context_attention": _prompts,
    "generation_attention": _generation,
    "moe": _experts,
    "nccl": _collectives,
    "custom_allreduce": _captured,
}
