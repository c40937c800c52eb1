"""What a prediction leaves out: a factor on compute, and the time of passes and messages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from partitioner.workload.graph import Graph


@dataclass(frozen=True)
class Corrections:
    """How the time of a device follows from what a graph says; times are in ms.

    Parameters
    ----------
    compute
        What the nodes' times are multiplied with: contention, and what a run does between operators.
    message
        The time that each message adds on the device that receives it, whatever its size.
    transfer
        What the transfers' times are multiplied with.
    pass_time
        The time that each pass adds, which ``simulate`` takes.
    """

    compute: float = 1.0
    message: float = 0.0
    transfer: float = 1.0
    pass_time: float = 0.0

    def applied(self, graph: Graph) -> Graph:
        """Return a graph with the corrected costs, for which ``solve`` finds plans and ``simulate`` times.

        The time of passes is not in it: it is the same on all devices of a chain.

        Examples
        --------
        >>> graph = Graph.from_arrays({"gpu": [1.0, 1.0]}, [(0, 1)], [0.5])
        >>> found = Corrections(1.2, 0.25, 2.0).applied(graph)
        >>> found.time.tolist(), found.cost.tolist()
        ([[1.2, 1.2]], [1.25])
        """
        cost = np.where(graph.cost > 0, self.message + self.transfer * graph.cost, 0.0)
        return replace(graph, time=self.compute * graph.time, cost=cost)
