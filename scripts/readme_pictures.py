"""Draw the picture of the README: a split of BERT with 24 layers, and its pipeline under 1F1B.

It is written to ``docs/images/split_and_pipeline.png``, or to the file that ``--output`` names. The same
workload gives the same picture. Needs ``pip install "dnn-partitioner[plots]"``.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib import pyplot
from matplotlib.figure import Figure
from PIL import Image

import partitioner as pt
from partitioner.analysis.plots import plot_graph, plot_timeline
from partitioner.schedule import simulate

ROOT = Path(__file__).resolve().parent.parent
WORKLOAD = ROOT / "instances" / "bert24_training.json"
PICTURE = ROOT / "docs" / "images" / "split_and_pipeline.png"
MICROBATCHES = 10
SIZE, DPI = (11.0, 6.4), 110  # inches, dots in an inch
COLOURS = 64


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="readme_pictures", description=__doc__)
    parser.add_argument(
        *("--output", "-o"), type=Path, default=PICTURE, metavar="FILE", help="write the picture to this file"
    )
    options = parser.parse_args(arguments)
    pyplot.switch_backend("agg")
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write(draw(pt.load(WORKLOAD)), options.output)
    return 0


def draw(workload: pt.Workload) -> Figure:
    """Return the best split above, the graph in the colours of its devices, and its pipeline below."""
    plan = pt.solve(workload.graph, workload.devices)
    timeline = simulate(workload.graph, workload.devices, plan, "1f1b", MICROBATCHES)
    figure, (above, below) = pyplot.subplots(2, 1, figsize=SIZE, height_ratios=(1, 1.3), layout="constrained")
    plot_graph(workload.graph, plan.placement, above, loads=plan.devices, layout="layered")
    above.set_title(
        f"BERT-24, training: {len(workload.graph)} nodes on {len(plan.stages)} devices", loc="left"
    )
    plot_timeline(timeline, below)
    return figure


def write(figure: Figure, path: Path) -> None:
    """Write a figure as a small PNG file, of few colours."""
    content = io.BytesIO()
    figure.savefig(content, dpi=DPI)
    pyplot.close(figure)
    Image.open(content).convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    sys.exit(main())
