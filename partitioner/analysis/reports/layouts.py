"""The report of the layouts of a language model on a cluster as one HTML file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from partitioner.analysis.plots.colours import COMPUTE, PARTS, PASSES, device_look
from partitioner.analysis.reports.canvas import (
    add_hover,
    draw_span,
    legend_above,
    new_figure,
    require_bokeh,
    row_figure,
    stacked_bars,
)
from partitioner.analysis.reports.report import Report, page
from partitioner.analysis.reports.timeline import timeline_figure
from partitioner.base.argument_types import require_type
from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.names import ranges
from partitioner.evaluation.text.tables import percentage
from partitioner.planning.layouts.layout import ClusterLayout
from partitioner.planning.layouts.result import (
    CHANGE_FIGURES,
    CHANGE_TEXTS,
    CHANGES,
    COLUMNS,
    DEGREES,
    FIGURES,
    LayoutPlan,
    change_cells,
)
from partitioner.planning.layouts.timing import LayoutRun
from partitioner.schedule.timeline import Timeline
from partitioner.workload.graph import Floats

if TYPE_CHECKING:
    from bokeh.plotting import figure as Figure  # noqa: N812

MOST_GPUS = 10_000  # that a picture shows
MOST_PASSES = 4_000  # of a schedule that is drawn; of a longer one the first microbatches
NAMED = 128  # GPUs up to which each is drawn with its ranks
ACROSS, CELL = 72, (72, 34)  # small cells across a picture; pixels of a cell with ranks
SMALL, LEAST, HIGHEST = 18, 6, 900  # pixels of a cell without ranks, and of the picture
TIMES = {
    "processing": COMPUTE, "collectives": PARTS["out"], "transfers": PARTS["in"],
    "exchange of gradients": PARTS["sync"], "optimizer": PASSES["W"], "waiting": "#b8bec8",
}  # fmt: skip
MEMORY = {
    "parameters": PASSES["F"], "gradients": PASSES["B"], "optimizer": PASSES["W"],
    "activations": PARTS["out"], "workspace": PARTS["in"],
}  # fmt: skip


def report_layouts(found: LayoutPlan, model: str = "layouts") -> Report:
    """Return a report of the layouts that :func:`partitioner.plan` found: one HTML file for any browser.

    Of the fastest layout it shows the ranks of every GPU, the schedule, what each device of a pipeline does
    during a batch and what it needs memory for, and the blocks of the stages; then all layouts, what changes
    of the cluster would buy, and the settings of the runtime, as far as these were asked for.

    Parameters
    ----------
    found
        What :func:`partitioner.plan` returned.
    model
        What the title says before the GPUs and the batch.

    Raises
    ------
    BackendUnavailable
        If bokeh is not installed.

    Examples
    --------
    >>> import partitioner as pt
    >>> config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 4, "n_head": 4}
    >>> config |= {"vocab_size": 128, "n_positions": 64}
    >>> found = pt.plan(config, gpus=2, device="A100-80", global_batch=8, sequence=64)
    >>> pt.report_layouts(found, "a small GPT").title  # doctest: +SKIP
    'a small GPT on 2 A100-80, batches of 8 sequences of 64 tokens'
    """
    require_bokeh()
    require_type("found", found, LayoutPlan)
    cluster, run = found.cluster, found.runs[0]
    batch = f"{found.global_batch:,} sequences of {found.sequence:,} tokens"
    title = f"{model} on {cluster.gpus:,} {cluster.device.name}, batches of {batch}"
    limit = cluster.memory / 1e9
    figures = {"times": _bars("times", run.time_parts, TIMES, "milliseconds of a batch")}
    figures["memory"] = _bars("memory", _gigabytes(run.memory_parts), MEMORY, "GB of a GPU", limit)
    draw_span(figures["memory"], limit)
    if cluster.gpus <= MOST_GPUS:
        figures["devices"] = _devices(run)
    if run.layout.pipeline > 1:
        figures["schedule"] = timeline_figure(_drawn(run), "ms")
    html = page(
        "layouts.html",
        figures,
        title=title,
        headline=found.headline(),
        tiles=_tiles(found),
        devices=_about_devices(run),
        schedule=_about_schedule(run),
        times=_about_times(run),
        memory=f"What a GPU of each rank holds; the dashed line is its memory, {amount(cluster.memory)}B.",
        stages=_stages(run),
        layouts=(("layout", *FIGURES), [("", _cells(found, i)) for i in range(len(found.rows))]),
        notes=(DEGREES, COLUMNS, found.why_second()),
        changes=((*CHANGE_TEXTS, *CHANGE_FIGURES), [("", change_cells(each)) for each in found.changes])
        if found.changes
        else (),
        gains=CHANGES,
        settings=found.settings() if found.runtime != "any" else "",
    )
    return Report(title, html)


def _cells(found: LayoutPlan, number: int) -> list[str]:
    row = found.rows[number]
    return [row.layout.name, *(cell(row) for cell in FIGURES.values())]


def _tiles(found: LayoutPlan) -> list[tuple[str, str, str]]:
    best, cluster = found.best, found.cluster
    return [
        ("time of a batch", f"{best.seconds:.4g}", "seconds"),
        ("lower bound", f"{found.bound:.4g}", f"seconds, {found.gap:.1%} below"),
        ("tokens a second", f"{best.tokens_per_second:,.0f}", f"on {cluster.gpus:,} GPUs"),
        ("MFU", f"{best.mfu:.1%}", f"{best.tflops_per_gpu:.0f} TFLOP/s of a GPU"),
        ("fullest memory", f"{amount(best.memory)}B", f"of {amount(cluster.memory)}B"),
        ("bubble", f"{best.bubble:.1%}", "of the time devices wait in the pipeline"),
        ("exposed exchange", f"{best.exposed:.1%}", "of the time gradients are exchanged alone"),
    ]


def _rank(number: int) -> str:
    return f"pipeline rank {number}"


def _gigabytes(parts: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: values / 1e9 for name, values in parts.items()}


def _bars(
    name: str, parts: Mapping[str, Floats], colours: Mapping[str, str], axis: str, end: float = 0.0
) -> Figure:
    """Return a picture of the parts of something up to `end`, with a bar for each device of a pipeline."""
    rows = [_rank(i) for i in range(len(next(iter(parts.values()))))]
    total = np.asarray(sum(parts.values()))
    plot = row_figure(name, rows, 1.05 * max(end, float(total.max())))
    plot.xaxis.axis_label = axis
    shown = {"rank": rows} | {part: [figure(each) for each in values] for part, values in parts.items()}
    bars = stacked_bars(plot, parts, colours, shown)
    add_hover(plot, bars, tuple(shown))
    legend_above(plot, len(parts))
    return plot


def ranks_of(layout: ClusterLayout) -> dict[str, np.ndarray]:
    """Return the ranks of every GPU in each parallelism, tensor parallelism innermost.

    Examples
    --------
    >>> ranks = ranks_of(ClusterLayout(tensor=2, pipeline=2, data=2))
    >>> ranks["tensor"].tolist(), ranks["data"].tolist(), ranks["pipeline"].tolist()
    ([0, 1, 0, 1, 0, 1, 0, 1], [0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1])
    """
    gpu = np.arange(layout.gpus)
    found, apart = {}, 1
    for name in ("tensor", "context", "data", "pipeline"):
        degree = getattr(layout, name)
        found[name] = gpu // apart % degree
        apart *= degree
    if layout.expert > 1:
        found["expert"] = (found["context"] + layout.context * found["data"]) % layout.expert
    return found


def _places(gpus: int, node: int, across: int) -> tuple[Floats, Floats]:
    """Return where GPUs are drawn: those of a server in lines of at most 8, servers next to one another."""
    wide = min(node, 8)
    high = -(-node // wide)
    server, place = np.divmod(np.arange(gpus), node)
    line, column = np.divmod(server, max(1, across // wide))
    x = column * (wide + 0.4) + place % wide
    return x, line * (high + 0.4) + place // wide


def _devices(run: LayoutRun) -> Figure:
    """Return the picture of the GPUs in their servers, in the colours of their pipeline ranks."""
    layout, node = run.layout, run.costs.cluster.node
    named = layout.gpus <= NAMED
    across = 16 if named else max(ACROSS, int((1.5 * layout.gpus) ** 0.5))
    x, y = _places(layout.gpus, node, across)
    size = CELL[1] if named else max(LEAST, min(SMALL, HIGHEST // (int(y.max()) + 1)))
    plot = new_figure(
        "devices",
        int(size * (y.max() + 2)) + 30,
        "pan,wheel_zoom,reset,save",
        x_range=(-0.7, max(float(x.max()), across - 1.0) + 0.7),
        y_range=(float(y.max()) + 0.7, -0.7),
    )
    plot.axis.visible = plot.grid.visible = False
    ranks = ranks_of(layout)
    stages = _blocks(run)
    held = run.memory
    source = {
        "GPU": [f"{i} (server {i // node})" for i in range(layout.gpus)],
        **{f"{name} rank": values for name, values in ranks.items()},
        "blocks": [stages[i] for i in ranks["pipeline"]],
        "memory": [f"{amount(float(held[i]))}B" for i in ranks["pipeline"]],
    }
    colours = [device_look(i)[0] for i in ranks["pipeline"]]
    shade = np.where(ranks["data"] % 2, 0.75, 1.0)
    drawn = {"x": x, "y": y, "colour": colours, "shade": shade}
    look = {"fill_color": "colour", "fill_alpha": "shade", "line_width": 0}
    boxes = plot.rect("x", "y", 0.94, 0.9, source=source | drawn, **look)
    if named:
        own = zip(*(ranks[name] for name in ("pipeline", "data", "tensor")), strict=True)
        words = [f"P{p} D{d} T{t}" for p, d, t in own]
        font = {"text_font_size": "11px", "text_align": "center", "text_baseline": "middle"}
        plot.text(x, y, words, text_color="#ffffff", **font)
    add_hover(plot, [boxes], tuple(source))
    return plot


def _about_devices(run: LayoutRun) -> str:
    layout, node = run.layout, run.costs.cluster.node
    if layout.gpus > MOST_GPUS:
        return f"The GPUs are not drawn: they are {layout.gpus:,}, a picture shows at most {MOST_GPUS:,}."
    words = "P pipeline, D data, T tensor rank. " if layout.gpus <= NAMED else ""
    return (
        f"Servers of {node} GPUs, in the colours of the pipeline ranks; every second data replica is paler. "
        f"{words}Ranks are numbered with tensor parallelism innermost, then context, data, pipeline."
    )


def _shortened(run: LayoutRun) -> int:
    """Return how many microbatches of the schedule are drawn: whole rounds of the pipeline."""
    layout = run.layout
    most = MOST_PASSES // (3 * layout.stages)
    return min(run.microbatches, max(layout.pipeline, most - most % layout.pipeline))


def _drawn(run: LayoutRun) -> Timeline:
    """Return the schedule of the microbatches that are drawn, with ranks in place of devices."""
    count = _shortened(run)
    own = replace(run, global_batch=count * run.layout.data * run.layout.microbatch).timeline
    names = tuple(_rank(i) for i in range(run.layout.pipeline))
    return replace(own, table=replace(own.table, devices=names))


def _about_schedule(run: LayoutRun) -> str:
    if run.layout.pipeline == 1:
        return f"There is no pipeline: each GPU runs {run.microbatches:,} microbatches one after the other."
    count = _shortened(run)
    first = f", of which the first {count:,} are drawn" if count < run.microbatches else ""
    several = f" with {run.layout.virtual_stages} stages on a device" if run.layout.virtual_stages > 1 else ""
    return f"{run.layout.schedule}{several}: {run.microbatches:,} microbatches a batch{first}."


def _about_times(run: LayoutRun) -> str:
    """Return what share of the time each exchange takes."""
    parts = run.time_parts
    total = sum(float(values.mean()) for values in parts.values())
    exposed = ("collectives", "transfers", "exchange of gradients")
    shares = ", ".join(f"{name} {percentage(float(parts[name].mean()) / total)}" for name in exposed)
    return (
        f"Communication that nothing hides, as a share of the mean over devices: {shares}. Collectives are "
        "those of tensor, context and expert parallelism, transfers those between stages."
    )


def _blocks(run: LayoutRun) -> list[str]:
    """Return the numbers of the blocks of every device of a pipeline."""
    blocks = np.concatenate([[0], np.cumsum(run.blocks)])
    own: list[list[str]] = [[] for _ in range(run.layout.pipeline)]
    for stage, rank in enumerate(run.device.tolist()):
        own[rank] += [str(i) for i in range(blocks[stage], blocks[stage + 1])]
    return [", ".join(ranges(each)) or "none" for each in own]


def _stages(run: LayoutRun) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Return the titles and the rows of the table of a pipeline's devices."""
    parts = run.time_parts
    total = run.simulated[0]
    columns = ["pipeline rank", "blocks", "GPUs", "ms a microbatch", "waiting", "GB"]
    rows = [
        (
            device_look(i)[0],
            [
                str(i),
                blocks,
                f"{run.layout.gpus // run.layout.pipeline:,}",
                figure(float(run.loads[i])),
                percentage(float(parts["waiting"][i]) / total),
                f"{run.memory[i] / 1e9:.1f}",
            ],
        )
        for i, blocks in enumerate(_blocks(run))
    ]
    return columns, rows
