"""Pictures of plans and schedules, one in each module; matplotlib is loaded when one is drawn."""

from partitioner.analysis.plots.graph import plot_graph
from partitioner.analysis.plots.loads import plot_loads
from partitioner.analysis.plots.memory import plot_memory
from partitioner.analysis.plots.sweep import plot_sweep
from partitioner.analysis.plots.timeline import plot_timeline

__all__ = ["plot_graph", "plot_loads", "plot_memory", "plot_sweep", "plot_timeline"]
