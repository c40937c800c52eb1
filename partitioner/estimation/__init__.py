"""Times and memory from measurements: Celeritas's Standard Evaluation and FastT's cost models."""

from partitioner.estimation.batches import predict_memory, predict_time
from partitioner.estimation.deviation import relative_deviation
from partitioner.estimation.links import LinkFit, fit_link, fit_transfers
from partitioner.estimation.operations import OperationTimes, is_stable, operation_times

__all__ = [
    "LinkFit",
    "OperationTimes",
    "fit_link",
    "fit_transfers",
    "is_stable",
    "operation_times",
    "predict_memory",
    "predict_time",
    "relative_deviation",
]
