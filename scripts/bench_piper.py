"""Published runs of Piper's program, made again by methods `alternatives`, `piper` and `two_bw`.

A record names an input, devices, memory, bandwidth, microbatches, the program's mode and its value, and where
it was computed the optimum. Every plan is evaluated by code that no method shares. Exit code: 0 if
`alternatives` equals every optimum and is never worse than the program; 1 if not; 2 for bad files.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from grids import markdown_grid, text_grid

import partitioner as pt

GOOD, BAD_RESULT, BAD_INPUT = 0, 1, 2
RECOMPUTED = "activation recomp"
NEAR = 1e-9
MS = 1e3  # the files are read in seconds, whatever their unit is, and values are in ms
RULES = ("no_tp", "no_dp", "no_recomp", "recomp_forced")
METHODS = ("alternatives", "piper", "two_bw")
HEADS = ("input", "devices", "GiB", "batch", "mode", "method", "value", "program", "optimum", "s", "equal")


@dataclass(frozen=True)
class Row:
    """What a method made of a record; values are None where there is no plan."""

    record: Mapping[str, Any]
    method: str
    value: float | None
    seconds: float
    stopped: str

    @property
    def against(self) -> float | None:
        """The value to compare with: for the exact method the optimum if it is known, else the program's."""
        best = self.record.get("optimum") if self.method == METHODS[0] else None
        known: float | None = best or self.record["time_per_sample"]
        return known

    @property
    def word(self) -> str:
        """How the two values compare."""
        if self.value is None or self.against is None:
            return "both none" if self.value is self.against else "none" if self.value is None else "new"
        if math.isclose(self.value, self.against, rel_tol=NEAR):
            return "equal"
        return "better" if self.value < self.against else "worse"

    @property
    def sound(self) -> bool:
        """Whether the exact method does what it should."""
        good = ("equal", "both none") if self.record.get("optimum") else ("equal", "both none", "better")
        return self.method != METHODS[0] or self.word in good

    def cells(self) -> list[str]:
        """The row as texts; times in the unit of the file."""
        record = self.record
        numbers = (self.value, record["time_per_sample"], record.get("optimum"))
        return [
            record["input"], str(record["k"]), f"{record['memory'] / 2**30:.3g}", str(record["N"]),
            record["algorithm"], self.method, *("-" if x is None else f"{x:.7g}" for x in numbers),
            f"{self.seconds:.2f}", self.word,
        ]  # fmt: skip


def modes(record: Mapping[str, Any]) -> list[str] | None:
    """Return the restrictions of a record's mode; None if it is not one of the dynamic program."""
    name: str = record["algorithm"]
    if name == "piper":
        return []
    rules = [rule for rule in RULES if rule in name]
    return rules if rules and "2bw" not in name and len("_".join(rules)) == len(name) else None


def baseline(record: Mapping[str, Any]) -> list[str] | None:
    """Return the restrictions of a record of the 2BW planner; None if it is not one that `two_bw` makes.

    It divides all nodes only where no title repeats, and always tries further stages before and after blocks.
    """
    parts = str(record["algorithm"]).split("_")
    blocks = record["input"].startswith("bert")
    if parts[:2] != ["2bw", "equi" if blocks else "layers"] or parts[-1] == "nosep":
        return None
    ending = {"recomp": "recomp_forced", "vanilla": "no_recomp"}
    return ["no_tp"] * ("notp" in parts) + [rule for word, rule in ending.items() if word in parts[3:]]


def workload_of(record: Mapping[str, Any], inputs: Path, rules: Sequence[str]) -> pt.Workload:
    """Return the workload of a record, with the alternatives that its mode has."""
    forced = "recomp_forced" in rules
    devices = pt.Devices(
        (
            pt.DeviceKind(
                "accelerator", record["k"], memory=record["memory"], bandwidth=record["bandwidth"] / MS
            ),
        )
    )
    option: dict[str, Any] = {"option": RECOMPUTED} if forced else {}
    found = pt.load(
        inputs / f"{record['input']}.json", bandwidth=record["bandwidth"], devices=devices, **option
    )

    def wanted(way: pt.Alternative) -> bool:
        recomputed = way.name.startswith(RECOMPUTED)
        return (
            not ("no_tp" in rules and way.degree > 1)
            and not ("no_recomp" in rules and recomputed)
            and not (forced and not recomputed)
        )

    kept = replace(found.graph, alternatives=found.graph.alternatives.kept(wanted))
    return pt.Workload(kept, found.devices, found.name)


def solved(
    record: Mapping[str, Any], inputs: Path, method: str, rules: Sequence[str], time_limit: float | None
) -> Row:
    """Return what a method makes of a record."""
    began = time.perf_counter()
    try:
        workload = workload_of(record, inputs, rules)
        plan = pt.solve(
            workload.graph,
            workload.devices,
            "piper",
            method=method,
            schedule="1f1b",
            microbatches=record["N"],
            replicas=1 if "no_dp" in rules else record["k"],
            time_limit=time_limit,
        )
    except (pt.InfeasibleError, pt.NoPlanFound) as error:
        return Row(record, method, None, time.perf_counter() - began, type(error).__name__)
    return Row(record, method, plan.value / MS, plan.runtime_seconds, plan.stop_reason)


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of all chosen records, one after the other."""
    for record in json.loads(Path(options.reference).read_text()):
        chosen = options.input in (None, record["input"]) and record["k"] <= options.most_devices
        exact, equal = modes(record), baseline(record)
        for method in options.methods if chosen else ():
            rules = equal if method == METHODS[2] else exact
            if rules is not None:
                yield solved(record, Path(options.inputs), method, rules, options.time_limit)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for every record and method, and a count of the comparisons; return the exit code."""
    options = _parser().parse_args(arguments)
    found = []
    try:
        for row in rows(options):
            found.append(row)
            if options.progress:
                print(*row.cells(), file=sys.stderr, flush=True)
    except (OSError, ValueError, pt.PartitionerError) as error:
        print(f"bench_piper: {error}", file=sys.stderr)
        return BAD_INPUT
    grid = markdown_grid if options.format == "markdown" else text_grid
    print(grid(HEADS, [row.cells() for row in found]))
    for method in options.methods:
        words = [row.word for row in found if row.method == method]
        counts = {word: words.count(word) for word in dict.fromkeys(words)}
        print(f"{method}: " + ", ".join(f"{count} {word}" for word, count in counts.items()))
    return GOOD if all(row.sound for row in found) else BAD_RESULT


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("reference", help="the records, a JSON file")
    parser.add_argument("inputs", help="the folder of Piper's inputs")
    parser.add_argument("--input", help="only the records of this input, such as resnet")
    parser.add_argument("--most-devices", type=int, default=4096, help="leave out records with more devices")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument(
        "--time-limit", type=float, default=None, help="seconds for each plan (default: none)"
    )
    parser.add_argument("--format", choices=("text", "markdown"), default="text")
    parser.add_argument("--progress", action="store_true", help="print each row to standard error at once")
    return parser


if __name__ == "__main__":
    sys.exit(main())
