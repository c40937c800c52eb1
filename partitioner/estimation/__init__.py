"""Times and memory from measurements (Celeritas, FastT), and times by a roofline of named devices."""

from partitioner.estimation.batches import predict_memory, predict_time
from partitioner.estimation.deviation import relative_deviation
from partitioner.estimation.links import LinkFit, fit_link, fit_transfers
from partitioner.estimation.named_devices import DEVICES, NamedDevice, named_device
from partitioner.estimation.operations import OperationTimes, is_stable, operation_times
from partitioner.estimation.roofline import roofline_time

__all__ = [
    "DEVICES",
    "LinkFit",
    "NamedDevice",
    "OperationTimes",
    "fit_link",
    "fit_transfers",
    "is_stable",
    "named_device",
    "operation_times",
    "predict_memory",
    "predict_time",
    "relative_deviation",
    "roofline_time",
]
