"""Published runs of Piper's program, made again by methods `alternatives`, `piper` and `two_bw`.

A record names an input, devices, memory, bandwidth, microbatches, the program's mode, its plan and value, and
where it was computed the optimum. `evaluate` evaluates the program's own plan. `freer` is `alternatives`
without those rules of a mode that it does not know, such as equal stages, so that its plans may only be
better. Every plan is evaluated by code that no method shares. Exit code: 0 if `evaluate` finds every value of
the program, `alternatives` equals every optimum, and neither it nor `freer` is worse than the program; 1 if
not; 2 for bad files.
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
USUAL, RECOMPUTED = "vanilla", "activation recomp"
NEAR = 1e-9
MS = 1e3  # the files are read in seconds, whatever their unit is, and values are in ms
RULES = ("no_tp", "no_dp", "no_recomp", "recomp_forced")
METHODS = ("alternatives", "piper", "two_bw", "freer", "evaluate")
EXACT, BASELINE, FREER, GIVEN = METHODS[0], *METHODS[2:]
SOUND = {  # comparisons with the program that are right; of the other methods any is
    EXACT: ("equal", "both none", "better"),
    FREER: ("equal", "both none", "better", "new"),
    GIVEN: ("equal",),
}
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
        best = self.record.get("optimum") if self.method == EXACT else None
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
        """Whether the row is as it must be."""
        known = self.method == EXACT and self.record.get("optimum")
        return self.word in SOUND.get(self.method, [self.word]) and not (known and self.word == "better")

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


def freer(record: Mapping[str, Any]) -> list[str] | None:
    """Return the restrictions of a mode that is not one of the dynamic program; None if it is one."""
    name = str(record["algorithm"])
    if modes(record) is not None:
        return None
    if name.startswith("split"):
        return ["recomp_forced"]
    parts = name.split("_")
    ending = {"recomp": "recomp_forced", "vanilla": "no_recomp"}
    return ["no_tp"] * ("notp" in parts) + [rule for word, rule in ending.items() if word == parts[-1]]


def rules_of(record: Mapping[str, Any], method: str) -> list[str] | None:
    """Return the restrictions under which a method makes a record; None if it does not make it."""
    if method == GIVEN:
        return [] if record["feasible"] else None
    return {BASELINE: baseline, FREER: freer}.get(method, modes)(record)


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
    workload = workload_of(record, inputs, rules)
    if method == GIVEN:
        value = value_of_stages(record, workload)
        return Row(record, method, value, time.perf_counter() - began, "")
    try:
        plan = pt.solve(
            workload.graph,
            workload.devices,
            "piper",
            method=EXACT if method == FREER else method,
            schedule="1f1b",
            microbatches=record["N"],
            replicas=1 if "no_dp" in rules else record["k"],
            time_limit=time_limit,
        )
    except (pt.InfeasibleError, pt.NoPlanFound) as error:
        return Row(record, method, None, time.perf_counter() - began, type(error).__name__)
    return Row(record, method, plan.value / MS, plan.runtime_seconds, plan.stop_reason)


def value_of_stages(record: Mapping[str, Any], workload: pt.Workload) -> float | None:
    """Return the value of the program's stages, which must be feasible; None if they are not."""
    devices, home, ways = list(workload.devices.names), {}, {}
    replicas, order = {}, []
    for stage in record["stages"]:
        count = stage["t"] * stage["d"]
        own, devices = devices[:count], devices[count:]
        order.append(own[0])
        replicas[own[0]] = tuple(own[1:])
        for node, option in zip(stage["nodes"], stage["TMPC"], strict=True):
            title = option if stage["t"] == 1 else f"{option} x{stage['t']}"
            home[str(node)], ways[str(node)] = own[0], title
    graph = workload.graph
    classes = {node: str(graph.color_labels[i]) for node, i in zip(graph.ids, graph.color, strict=True)}
    found = pt.evaluate(
        graph,
        workload.devices,
        {node: home[one] for node, one in classes.items()},
        "piper",
        schedule="1f1b",
        microbatches=record["N"],
        replicas=replicas,
        order=order,
        alternatives={node: ways[one] for node, one in classes.items() if ways[one] != USUAL},
    )
    return found.value / MS if found.feasible else None


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of all chosen records, one after the other."""
    for record in json.loads(Path(options.reference).read_text()):
        chosen = options.input in (None, record["input"]) and record["k"] <= options.most_devices
        for method in options.methods if chosen else ():
            rules = rules_of(record, method)
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
