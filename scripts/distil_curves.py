"""Distils the tables of measured operations into the curves of `partitioner/estimation/curves.json`.

    python scripts/distil_curves.py TABLES [--write]

`TABLES` is a folder with a folder of tables for each system (`a100_sxm`, `b200_sxm`, `h100_sxm`, `h200_sxm`,
`l40s`), as in `systems/data` of NVIDIA's aiconfigurator; `custom_allreduce.parquet` is its
`comm/vllm/VERSION/custom_allreduce_perf.parquet`. Curves of the package whose table is not there stay. A
random third of the entries is held out of every curve; the printed table has the errors of the curves on it.
`--write` replaces the file of the package.

A curve is a grid whose values minimise the sum of absolute deviations of the logarithms of measured times,
and weakly the differences of neighbours, by reweighted least squares with conjugate gradients.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from partitioner.estimation import curves
from partitioner.estimation.curves import STEPS, Curve, corners, encoded
from partitioner.estimation.device_operations import CAPTURED, COLLECTIVES, Collective
from partitioner.estimation.device_time import COLLECTIVE_DTYPE, base_time
from partitioner.estimation.measured_tables import Measured, read_operation_tables
from partitioner.estimation.named_devices import BYTES, NamedDevice, named_device

Floats = NDArray[np.float64]
FOLDERS = {
    "A100-80": "a100_sxm", "H100": "h100_sxm", "H200": "h200_sxm", "B200": "b200_sxm", "L40S": "l40s",
}  # fmt: skip
SOURCE = (
    "Distilled by scripts/distil_curves.py from the measured tables of github.com/ai-dynamo/aiconfigurator "
    "(NVIDIA, Apache-2.0; snapshot of 2026-08-21; vLLM 0.14.0 on A100, 0.24.0 on the others; NCCL 2.27.3 and "
    "2.29.2; vLLM's all-reduces in captured graphs from the package aiconfigurator 0.12.0), two thirds of "
    "the entries chosen at random with seed 0"
)
SIZES = (32, 64, 128, 256, 512, 1024, 1536, 2048, 4096, 8192, 16384, 65536)
HEADS = (1, 4, 16, 32, 64, 128, 256, 1024, 16384)
TOKENS = (1, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
HEAD = (64, 128, 192, 256, 512)
MESSAGES = tuple(4.0**power for power in range(4, 16))
FOURS = ((1, 2),)  # whether rows are whole fours: an axis of products of narrow numbers
POWERS = tuple(2.0**power for power in range(8, 31))
LAST = ("balanced_experts", CAPTURED)  # so that a third of each older table stays the same
COPIES = ("all_gather", "all_to_all")  # whose times depend on bytes alone, of any type of numbers
EXPERT_ROWS = (0.02, 0.25, 1, 4, 16, 64, 256, 1024, 4096)
BALANCED_ROWS = (0.02, 0.06, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
LENGTHS = (2, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 131072)
KEYS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 16384)  # heads of keys, of all sequences
GPUS = (2, 4, 8)
AXES: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "product": ((1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 32768), SIZES, SIZES),
    "prompt": (TOKENS, HEADS, HEAD, (1, 2, 4, 8, 64)),
    "windowed_prompt": (TOKENS, HEADS, HEAD, (1, 2, 4, 6, 8, 64)),
    "generation": (LENGTHS, KEYS, HEAD, (1, 2, 4, 8, 16, 32, 64)),
    "windowed_generation": (LENGTHS, KEYS, HEAD, (1, 2, 4, 8, 16, 64)),
    "experts": (
        EXPERT_ROWS,
        (1, 2, 8, 32, 64, 128, 256, 512),
        (16, 64, 128, 256, 512, 1024, 2048, 4096, 16384),
        (1, 4, 16, 64, 256),
        (1, 2),
    ),
    "balanced_experts": (
        BALANCED_ROWS,
        (8, 16, 32, 128, 256, 512),
        (16, 32, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 16384),
        (2048, 4096, 6144, 8192),
        (1, 2),
    ),
    **dict.fromkeys(COLLECTIVES, (MESSAGES, GPUS)),
    CAPTURED: (POWERS, GPUS),
}
ROUNDS, STEPS_OF_GRADIENTS, SMOOTH = 6, 150, 3e-3
LEAST = 0.01  # of a deviation, whose inverse is a weight


@dataclass(frozen=True)
class Row:
    """The errors of a curve on what was held out of it."""

    device: str
    operation: str
    dtype: str
    entries: int
    held_out: int
    median: float
    high: float
    errors: Floats


def main() -> None:
    """Distil, print the errors, and write the file if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tables", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    record, rows = distilled(given.tables)
    print_table(rows)
    if given.write:
        path = Path(curves.__file__).with_name(curves.FILE)
        for name, old in json.loads(path.read_text(encoding="utf-8"))["devices"].items():
            record["devices"][name] = record["devices"][name] | {
                kind: old[kind] for kind in old if kind not in record["devices"][name]
            }
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        print(f"{path}: {path.stat().st_size:,} bytes")


def distilled(tables: Path) -> tuple[dict[str, Any], list[Row]]:
    """Return the content of the file of curves, and the errors of each curve."""
    devices: dict[str, dict[str, dict[str, Any]]] = {}
    rows: list[Row] = []
    for name, folder in FOLDERS.items():
        found = devices.setdefault(name, {})
        for number, one in enumerate(chosen_from(read_operation_tables(tables / folder))):
            held = held_out(number, len(one.time))
            device, kind = named_device(name), one.operation.kind
            if kind == CAPTURED and device.peer is None:  # vLLM has no such kernel for more than two of them
                continue
            points = used(one, (*AXES[kind], *FOURS * (kind == "product" and BYTES[one.dtype] < 2)), ~held)
            curve = fitted(one, points, device, ~held)
            found.setdefault(kind, {})[one.dtype] = coded(curve)
            rows.append(judged(one, curve, device, held))
    return {"source": SOURCE, "devices": devices}, rows


def chosen_from(tables: list[Measured]) -> list[Measured]:
    """Return the measurements that have curves: of reductions one type of numbers, of copies all together."""
    found = [one for one in tables if one.operation.kind not in COPIES]
    captured = (replace(one, dtype=COLLECTIVE_DTYPE) for one in found if one.operation.kind == CAPTURED)
    found = [one for one in found if one.operation.kind != CAPTURED] + list(captured)
    found = [
        one for one in found if not isinstance(one.operation, Collective) or one.dtype == COLLECTIVE_DTYPE
    ]
    for name in COPIES:
        several = [one for one in tables if one.operation.kind == name]
        gpus, size = (np.concatenate([one.operation.axes[i] for one in several]) for i in (1, 0))
        time = np.concatenate([one.time for one in several])
        found.append(Measured(Collective(name, gpus, size), COLLECTIVE_DTYPE, time))
    return sorted(found, key=lambda one: LAST.index(one.operation.kind) if one.operation.kind in LAST else -1)


def held_out(number: int, count: int) -> NDArray[np.bool_]:
    """Return which of `count` entries of a device's table `number` are held out: a random third."""
    return np.random.default_rng([0, number]).random(count) < 1 / 3


def used(
    one: Measured, points: tuple[tuple[float, ...], ...], chosen: NDArray[np.bool_]
) -> list[list[float]]:
    """Return the points of axes on both sides of those that measurements are beyond."""
    kept = []
    for axis, size in zip(points, one.operation.axes, strict=False):
        values = np.broadcast_to(size, one.time.shape)[chosen]
        low = max(np.searchsorted(axis, values.min(), side="right") - 1, 0)
        high = min(np.searchsorted(axis, values.max(), side="left"), len(axis) - 1)
        kept.append(list(axis[low : high + 1]))
    return kept


def fitted(one: Measured, points: list[list[float]], device: NamedDevice, chosen: NDArray[np.bool_]) -> Curve:
    """Return the curve of some measurements."""
    base = base_time(device, one.operation, one.dtype)
    target = np.log2(one.time / base)[chosen]
    sizes = [np.broadcast_to(size, one.time.shape)[chosen] for size in one.operation.axes]
    at, share = corners(points, sizes)
    shape = tuple(len(axis) for axis in points)
    values = np.full(int(np.prod(shape)), float(np.median(target)))
    weight = np.ones(len(target))
    for _ in range(ROUNDS):
        values = _least_squares(at, share, target, weight, values, shape)
        weight = 1 / np.maximum(np.abs(target - (share * values[at]).sum(axis=1)), LEAST)
        weight /= weight.mean()
    return Curve(tuple(tuple(axis) for axis in points), np.rint(values * STEPS).reshape(shape) / STEPS)


def _least_squares(
    at: NDArray[np.int64],
    share: Floats,
    target: Floats,
    weight: Floats,
    start: Floats,
    shape: tuple[int, ...],
) -> Floats:
    """Return the values with the least weighted squares, by conjugate gradients from `start`."""

    def adjoint(deviation: Floats) -> Floats:
        weighed = (share * (weight * deviation)[:, None]).ravel()
        return np.bincount(at.ravel(), weighed, len(start)).astype(np.float64)

    def normal(values: Floats) -> Floats:
        return adjoint((share * values[at]).sum(axis=1)) + SMOOTH * _roughness(values.reshape(shape)).ravel()

    found = start.copy()
    rest = adjoint(target) - normal(found)
    direction, size = rest.copy(), float(rest @ rest)
    first = size
    for _ in range(STEPS_OF_GRADIENTS):
        if size <= 1e-12 * first:
            break
        image = normal(direction)
        step = size / float(direction @ image)
        found += step * direction
        rest -= step * image
        size, before = float(rest @ rest), size
        direction = rest + size / before * direction
    return found


def _roughness(values: Floats) -> Floats:
    """Return the gradient of half the squared differences of neighbours."""
    total = np.zeros_like(values)
    for axis in range(values.ndim):
        change = np.diff(values, axis=axis)
        total -= np.diff(change, axis=axis, prepend=0, append=0)
    return total


def coded(curve: Curve) -> dict[str, Any]:
    """Return a curve as the file has it."""
    return {"axes": [list(axis) for axis in curve.axes], "values": encoded(curve.values)}


def judged(one: Measured, curve: Curve, device: NamedDevice, held: NDArray[np.bool_]) -> Row:
    """Return the errors of a curve on the entries that were held out of it."""
    time = base_time(device, one.operation, one.dtype) * curve.factor(one.operation.axes)
    error = np.abs(time / one.time - 1)[held]
    median, high = (float(np.quantile(error, part)) for part in (0.5, 0.95))
    return Row(
        device.name, one.operation.kind, one.dtype, len(one.time), int(held.sum()), median, high, error
    )


def print_table(rows: list[Row]) -> None:
    """Print the errors as a table in Markdown."""
    print("| device | operation | numbers | entries | held out | median error | 95 % |")
    print("|---|---|---|--:|--:|--:|--:|")
    for row in rows:
        print(
            f"| {row.device} | {row.operation} | {row.dtype} | {row.entries:,} | {row.held_out:,} "
            f"| {row.median:.1%} | {row.high:.1%} |"
        )
    every = np.concatenate([row.errors for row in rows])
    print(f"all {len(every):,} held out: median {np.median(every):.1%}, 95 % {np.quantile(every, 0.95):.1%}")
    print(f"curves within 5 % and 20 %: {sum(within(rows))} of {len(rows)}")


def within(rows: list[Row]) -> Iterator[bool]:
    """Yield whether each curve is as good as it is meant to be."""
    return (row.median <= 0.05 and row.high <= 0.2 for row in rows)


if __name__ == "__main__":
    main()
