"""What methods are told of each objective, by its name."""

from partitioner.planning.objectives import OBJECTIVES
from partitioner.problem.measure import Measure

MEASURES: dict[str, Measure] = {name: objective.measure for name, objective in OBJECTIVES.items()}
