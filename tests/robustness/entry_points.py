"""Every documented entry point with arguments that it accepts, and values that no argument should be."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import partitioner as pt
from partitioner import estimation, plots
from partitioner.exports.chrome_trace import chrome_trace, save_chrome_trace
from partitioner.exports.torch_schedule import save_torch_schedule, torch_ranks, torch_schedule
from partitioner.schedule import Table, simulate
from partitioner.schedule.stash import stash

PLAIN = "granularity memory_budget step_limit orders contiguous_cpus contiguous_backward"
PIPED = "subgraphs_per_accelerator replicas schedule microbatches constraints"
PLACED = "transfers refine reserve_memory grouper fuse uniform sct_threshold fusion_range"
OPTIONS = {
    "throughput": (*PLAIN.split(), *PIPED.split()),
    "batch": ("microbatches", "schedule", "replicas"),
    "latency": ("subgraphs_per_accelerator",),
    "makespan": (*PLACED.split(), "fusion_memory", "imbalance", "placer"),
}
LIMITS = ("max_time_per_sample", "max_slowdown")


@dataclass(frozen=True)
class Entry:
    """A call that works."""

    name: str
    call: Callable[..., Any]
    given: Mapping[str, Any]
    also: tuple[str, ...] = ()

    def arguments(self) -> Iterator[str]:
        """The names of everything that may be given."""
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        for parameter in inspect.signature(self.call).parameters.values():
            if parameter.kind in kinds:
                yield parameter.name
        yield from self.also


def broken_values(folder: Path) -> list[Any]:
    """Values of which hardly any is one that an argument may have."""
    binary = folder / "binary"
    binary.write_bytes(bytes(range(256)))
    return [
        None, object(), "", "nonsense", [], {}, (), [None], {None: None}, -1, 0, 2**31, 2**63, 10**400,
        float("nan"), float("inf"), -0.5, 1e300, b"bytes", True, 3 + 4j, lambda *_: None, {1, 2},
        folder, str(folder), binary, folder / "none" / "file", np.float64(2.5), np.zeros((2, 2)),
        [[1.0, 2.0], [3.0]], {"a": 1}, {0: "accelerator9"}, {0: 1}, [0], ["accelerator0"],
        {"accelerator0": "x"}, "accelerator0", range(3), "\x00", "\ud800", iter([1]),
    ]  # fmt: skip


def entries(folder: Path) -> list[Entry]:
    """Every entry point."""
    times = {"accelerator": [1.0, 2.0, 1.0], "cpu": [4.0, 4.0, 4.0]}
    graph = pt.Graph.from_arrays(times, [(0, 1), (1, 2)], cost=0.5, size=1.0)
    devices = pt.Devices.accelerated(2, memory=8.0, cpus=1)
    placement = {0: "accelerator0", 1: "accelerator0", 2: "accelerator1"}
    plan = pt.solve(graph, devices)
    timeline = simulate(graph, devices, plan, "inference", 3)
    plan.save(folder / "plan.json")
    timeline.save(folder / "timeline.json")
    digraph = pt.to_networkx(graph)
    native, profile = INSTANCES / "bert24_inference.json", INSTANCES / "profiles" / "resnet50.txt"
    table, config = folder / "layers.csv", folder / "config.json"
    table.write_text("name,forward,backward\na,1,2\nb,1,2\n", encoding="utf-8")
    config.write_text(json.dumps(CONFIG), encoding="utf-8")
    both: dict[str, Any] = {"graph": graph, "devices": devices}
    quick = {"time_limit": 2.0}
    asked = {"throughput": {}, "batch": {"microbatches": 3}, "latency": {}, "makespan": {}}
    phases = [{"phases": {"decode": dict.fromkeys(times, 1.0)}}] * 3
    extras = replace(graph.extras, nodes=phases, edges=[{"phases": {"decode": 0.5}}] * 2)
    serving = replace(graph, cache=np.ones(3), extras=extras)
    limited = pt.Devices((pt.DeviceKind("accelerator", 2, memory=8.0),))
    filled = {"graph": serving, "devices": limited, "objective": "capacity"}
    placed = both | {"placement": placement}
    planned = both | {"plan": plan}
    out = folder / "out.json"
    run, along = {"microbatches": 3, "schedule": "inference"}, {1: [pt.Dimension("batch")]}
    lines = {"batches": [1, 2], "batch": 3}
    return [
        *(
            Entry(
                f"solve {objective}",
                pt.solve,
                both | quick | more | {"objective": objective},
                OPTIONS[objective],
            )
            for objective, more in asked.items()
        ),
        Entry("solve dpl", pt.solve, both | quick | {"method": "dpl"}, OPTIONS["throughput"]),
        Entry("evaluate", pt.evaluate, placed),
        Entry(
            "evaluate batch",
            pt.evaluate,
            placed | {"objective": "batch", **run},
        ),
        Entry("evaluate latency", pt.evaluate, placed | {"objective": "latency"}),
        Entry("evaluate makespan", pt.evaluate, placed | {"objective": "makespan"}),
        Entry("certify", pt.certify, placed | quick),
        Entry("compare_methods", pt.compare_methods, both | {"methods": ["dpl"], "time_limit": 1.0}),
        Entry("compare_schedules", pt.compare_schedules, planned | {"microbatches": 3}),
        Entry("weigh_phases", pt.weigh_phases, {"graph": serving, "weights": {"decode": 2.0}}),
        Entry("evaluate capacity", pt.evaluate, filled | {"placement": placement}),
        Entry("solve capacity", pt.solve, filled | quick | {"method": "dpl"}, LIMITS),
        Entry("explain", pt.explain, planned | {"time_limit": 1.0, "what_if": ["more_memory"]}),
        Entry("diff", pt.diff, both | {"before": plan, "after": placement}),
        Entry("fewest_devices", pt.fewest_devices, both | quick | {"max_time_per_sample": 9.0}),
        Entry("least_memory", pt.least_memory, both | quick | {"max_time_per_sample": 9.0}),
        Entry("conflicting_demands", pt.conflicting_demands, both | quick),
        Entry("data_parallel", pt.data_parallel, {"graph": graph, "replicas": 2}),
        Entry(
            "split_operations",
            pt.split_operations,
            both | quick | {"dimensions": along},
        ),
        Entry("from_networkx", pt.from_networkx, {"digraph": digraph}),
        Entry("to_networkx", pt.to_networkx, {"graph": graph}),
        Entry("load", pt.load, {"path": native}),
        Entry("export", pt.export, {"workload": pt.Workload(graph, devices), "plan": plan, "to": "nodes"}),
        Entry("load_pipedream", pt.load_pipedream, {"path": profile, "bandwidth": 1e9, "accelerators": 2}),
        Entry("load table", pt.load, {"path": table, "accelerators": 2}, LAYER_OPTIONS),
        Entry("load_config", pt.load_config, {"path": config, **SERVED}),
        Entry("sweep", swept, {"workloads": [pt.Workload(graph, devices)], "pools": [devices]}),
        Entry("DevicePool", pt.DevicePool, {"accelerators": 2}),
        Entry("load_plan", pt.load_plan, {"path": folder / "plan.json"}),
        Entry("load_placement", pt.load_placement, both | {"path": folder / "plan.json"}),
        Entry("load_timeline", pt.load_timeline, {"path": folder / "timeline.json"}),
        Entry("plan.save", plan.save, {"path": out}),
        Entry("plan.summary", plan.summary, {}),
        Entry("timeline.save", timeline.save, {"path": out}),
        Entry("Graph.from_arrays", pt.Graph.from_arrays, {"time": times, "edges": [(0, 1)]}),
        Entry("Graph.chain", pt.Graph.chain, {"layers": [LAYER], "bandwidth": 1e9}),
        Entry("Graph.chain of one layer", layer, {"name": "a", "forward": 1.0, "backward": 2.0}),
        Entry("Graph", pt.Graph, {name: getattr(graph, name) for name in FIELDS}),
        Entry("Devices", pt.Devices, {"kinds": devices.kinds}),
        Entry("Devices.accelerated", pt.Devices.accelerated, {"accelerators": 2}),
        Entry("Devices.kind_of", devices.kind_of, {"device": "cpu0"}),
        Entry("DeviceKind", device, {"name": "gpu", "count": 2}),
        Entry("Level", level, {"name": "host", "devices": {"gpu": 2}, "slowdown": 2.0}),
        Entry("Constraints", pt.Constraints, {}),
        Entry("Transfers", pt.Transfers, {}),
        Entry("Transfers.times", pt.Transfers().times, {"devices": devices}),
        Entry("Placer", pt.Placer, {}),
        Entry("Placing", pt.Placing, {}),
        Entry("Dimension", pt.Dimension, {"name": "batch"}),
        Entry("Workload", pt.Workload, both),
        Entry("Workload.save", pt.Workload(graph, devices).save, {"path": out}),
        Entry("simulate", simulate, planned | run),
        Entry("stash", stash, {"schedule": "1f1b", "stage": 0, "stages": 2, "microbatches": 3}),
        Entry("Table.from_rows", Table.from_rows, {"rows": timeline.table.rows()}),
        Entry("chrome_trace", chrome_trace, {"runs": timeline}),
        Entry("save_chrome_trace", save_chrome_trace, {"runs": timeline, "path": out}),
        Entry("torch_schedule", torch_schedule, {"table": timeline.table}),
        Entry("torch_ranks", torch_ranks, {"table": timeline.table}),
        Entry("save_torch_schedule", save_torch_schedule, {"table": timeline.table, "path": out}),
        Entry("named_device", estimation.named_device, {"name": "H100"}),
        Entry(
            "roofline_time",
            estimation.roofline_time,
            {"flops": [1e9], "nbytes": [1e6], "device": "H100"},
        ),
        Entry("fit_link", estimation.fit_link, {"sizes": [1.0, 2.0], "times": [1.0, 2.0]}),
        Entry("fit_transfers", estimation.fit_transfers, {"devices": devices, "measurements": []}),
        Entry(
            "operation_times",
            estimation.operation_times,
            {"measurements": [MEASURED], "operations": ["conv"], "kinds": ["accelerator"]},
        ),
        Entry("predict_time", estimation.predict_time, lines | {"time": [[1.0], [2.0]]}),
        Entry(
            "predict_memory",
            estimation.predict_memory,
            lines | {"memory": [[1.0], [2.0]]},
        ),
        Entry("relative_deviation", estimation.relative_deviation, {"estimate": [1.0], "actual": [1.0]}),
        Entry("is_stable", estimation.is_stable, {"before": TIMES, "after": TIMES}),
        Entry("plot_graph", plots.plot_graph, {"graph": graph, "placement": placement}),
        Entry("plot_loads", plots.plot_loads, {"plan": plan}),
        Entry("plot_memory", plots.plot_memory, {"timeline": timeline}),
        Entry("plot_timeline", plots.plot_timeline, {"timeline": timeline}),
    ]


def device(**fields: Any) -> pt.Devices:
    """Devices of one kind, since kinds are checked where they are used."""
    return pt.Devices((pt.DeviceKind(**fields),))


def level(**fields: Any) -> pt.Devices:
    """Devices with one level."""
    return pt.Devices((pt.DeviceKind("gpu", 4),), levels=(pt.Level(**fields),))


def swept(
    workloads: Any,
    pools: Any = None,
    options: Any = None,
    results: Any = None,
    plans: Any = None,
    retry_failed: Any = False,
    on_progress: Any = None,
    stop: Any = None,
) -> pt.SweepResult:
    """A sweep on a thread, without compiling all kernels."""
    with ThreadPoolExecutor(1) as executor:
        return pt.sweep(
            workloads,
            pools,
            options,
            results=results,
            plans=plans,
            executor=executor,
            warm_up=False,
            retry_failed=retry_failed,
            on_progress=on_progress,
            stop=stop,
        )


def layer(**fields: Any) -> pt.Graph:
    """A graph of one layer, since layers are checked where they are used."""
    return pt.Graph.chain([pt.Layer(**fields)], bandwidth=1e9)


layer.__signature__ = inspect.signature(pt.Layer)  # type: ignore[attr-defined]
device.__signature__ = inspect.signature(pt.DeviceKind)  # type: ignore[attr-defined]
level.__signature__ = inspect.signature(pt.Level)  # type: ignore[attr-defined]
FIELDS = ("kinds", "ids", "time", "allowed", "size", "backward", "color", "layer", "edges", "cost")
LAYER = pt.Layer("a", 1.0, output=2.0)
LAYER_OPTIONS = ("bandwidth", "training", "microbatches")
CONFIG = {"model_type": "gpt2", "n_embd": 8, "n_head": 2, "n_layer": 1, "n_positions": 4, "vocab_size": 9}
SERVED = {"sequence": 4, "device": "H100", "bandwidth": 1e9}
INSTANCES = Path(__file__).parents[2] / "instances"
MEASURED = ("conv", "accelerator", 1.0)
TIMES = estimation.operation_times([MEASURED], ["conv"], ["accelerator"])
