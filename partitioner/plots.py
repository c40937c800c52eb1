"""Pictures of plans, schedules and sweeps; matplotlib is imported when one is drawn."""

from partitioner.analysis.plots import plot_graph, plot_loads, plot_memory, plot_sweep, plot_timeline

__all__ = ["plot_graph", "plot_loads", "plot_memory", "plot_sweep", "plot_timeline"]
