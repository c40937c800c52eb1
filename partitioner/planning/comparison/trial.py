"""A kind of pipeline with a number of copies, and its plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from partitioner.base.errors import InfeasibleError, NoPlanFound, OptionError
from partitioner.planning.comparison.bounds import exceeds_memory
from partitioner.planning.comparison.copies import Spread, devices_of_a_copy
from partitioner.planning.comparison.recipes import Recipe
from partitioner.planning.objectives import SIMULATED, THROUGHPUT
from partitioner.planning.solve import solve
from partitioner.results.plan import Plan
from partitioner.workload.graph import Graph
from partitioner.workload.workload import Workload

INFEASIBLE = "no stages fit the memory and the constraints"
TIME_OVER = "(time_limit)"  # what the message of such an error says
LATE = "no plan was found in the time"


class Trial(NamedTuple):
    """A kind of pipeline, and how many devices hold each stage."""

    recipe: Recipe
    spread: Spread

    @property
    def key(self) -> tuple[str, str, bool, Spread]:
        """What its plan depends on."""
        return self.recipe.planned, str(self.recipe.options), self.recipe.ways, self.spread

    @property
    def takes_start(self) -> bool:
        """Whether the search for its plan can start from a plan."""
        return self.recipe.uneven and not self.recipe.ways

    def __str__(self) -> str:
        ways = " with alternatives" if self.recipe.ways else ""
        return f"{self.recipe.title}{ways}{'' if str(self.spread) == '1' else f' x{self.spread}'}"

    def planned(self, workload: Workload, microbatches: int, options: Mapping[str, Any]) -> Plan | str:
        """Return the plan for one copy, or why there is none.

        Parameters
        ----------
        workload, microbatches
            The graph, all devices, and all samples of a batch.
        options
            Further options of :func:`partitioner.solve`.
        """
        recipe, spread = self
        graph, share = self._graph(workload.graph), devices_of_a_copy(workload.devices, spread.copies)
        samples = -(-microbatches // spread.copies)
        if exceeds_memory(graph, share, recipe.planned, samples):
            return INFEASIBLE
        given = {**options, **recipe.options, "schedule": recipe.planned, "microbatches": samples}
        given |= {"replicas": spread.replicas} if spread.replicas > 1 else {}
        given |= {"method": THROUGHPUT.choosing_method} if recipe.ways else {}
        try:
            return solve(graph, share, (THROUGHPUT if recipe.ways else SIMULATED).name, **given)
        except InfeasibleError:
            return INFEASIBLE
        except NoPlanFound as error:
            return LATE if TIME_OVER in str(error) else str(error)
        except OptionError as error:
            return str(error)

    def _graph(self, graph: Graph) -> Graph:
        """Return the graph with those alternatives among which the plan may choose."""
        if not graph.alternatives:
            return graph
        most = self.spread.replicas if self.recipe.ways else 0
        return replace(graph, alternatives=graph.alternatives.kept(lambda way: way.degree <= most))
