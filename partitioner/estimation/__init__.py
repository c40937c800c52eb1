"""Times and memory from measurements (Celeritas, FastT), and times by a roofline of named devices."""

from partitioner.estimation.batches import predict_memory, predict_time
from partitioner.estimation.device_operations import (
    COLLECTIVES,
    AttentionScores,
    Collective,
    ExpertProducts,
    Product,
    Traffic,
    unfused_attention,
)
from partitioner.estimation.device_time import curve_note, operation_time
from partitioner.estimation.links import LinkFit, fit_link, fit_transfers
from partitioner.estimation.measured import relative_deviation
from partitioner.estimation.measured_tables import Measured, read_operation_tables
from partitioner.estimation.named_devices import DEVICES, NamedDevice, named_device, read_device
from partitioner.estimation.operations import OperationTimes, is_stable, operation_times
from partitioner.estimation.roofline import roofline_time

__all__ = [
    "COLLECTIVES",
    "DEVICES",
    "AttentionScores",
    "Collective",
    "ExpertProducts",
    "LinkFit",
    "Measured",
    "NamedDevice",
    "OperationTimes",
    "Product",
    "Traffic",
    "curve_note",
    "fit_link",
    "fit_transfers",
    "is_stable",
    "named_device",
    "operation_time",
    "operation_times",
    "predict_memory",
    "predict_time",
    "read_device",
    "read_operation_tables",
    "relative_deviation",
    "roofline_time",
    "unfused_attention",
]
