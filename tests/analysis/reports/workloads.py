"""Workloads and plans for reports: with hostile names, and of each kind of schedule."""

from __future__ import annotations

import partitioner as pt

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    "<img src=x onerror='window.hacked = 3'>",
    '" onmouseover="window.hacked = 4" x="',
    "javascript:window.hacked = 5",
    "' onload='window.hacked = 6' {{ 7 * 7 }} {% raw %} @{memory} $index &lt;b&gt; <!-- ]]>",
)


def hostile() -> tuple[pt.Workload, pt.Plan]:
    """Return a workload all of whose names try to become markup, and a plan with such notes and options."""
    graph = pt.Graph.from_arrays(
        {HOSTILE[0]: [1.0] * len(HOSTILE)},
        [(i, i + 1) for i in range(len(HOSTILE) - 1)],
        0.25,
        names=HOSTILE,
        layer=HOSTILE,
        size=1e6,
    )
    devices = pt.Devices((pt.DeviceKind(HOSTILE[0], 2, memory=1e8),))
    workload = pt.Workload(graph, devices, name=HOSTILE[1])
    plan = pt.solve(graph, devices)
    return workload, changed(plan, notes=HOSTILE, options={HOSTILE[2]: HOSTILE[3]}, native_status=HOSTILE[4])


def changed(plan: pt.Plan, **fields: object) -> pt.Plan:
    """Return the plan with other fields."""
    from dataclasses import replace

    return replace(plan, **fields)  # type: ignore[arg-type]


def small(training: bool = True) -> pt.Workload:
    """Return a chain of four layers, with or without a backward pass, on two accelerators."""
    layers = [
        pt.Layer(f"layers.{i}", forward=1.0 + i, backward=2.0 * training, output=0.25) for i in range(4)
    ]
    graph = pt.Graph.chain(layers, bandwidth=1.0, training=training)
    return pt.Workload(graph, pt.Devices.accelerated(2, memory=1e9), name="small")
