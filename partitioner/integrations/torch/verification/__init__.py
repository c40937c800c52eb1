"""Whether a plan's prediction is true: pipelines of torch, run and measured, beside what was predicted."""

from partitioner.integrations.torch.verification.comparing import RunComparison, compare_with_run
from partitioner.integrations.torch.verification.corrections import Corrections
from partitioner.integrations.torch.verification.fitting import fit_corrections
from partitioner.integrations.torch.verification.measured import MeasuredRun
from partitioner.integrations.torch.verification.measuring import measure_pipeline
from partitioner.integrations.torch.verification.model_passes import WholePasses, whole_passes

__all__ = [
    "Corrections",
    "MeasuredRun",
    "RunComparison",
    "WholePasses",
    "compare_with_run",
    "fit_corrections",
    "measure_pipeline",
    "whole_passes",
]
