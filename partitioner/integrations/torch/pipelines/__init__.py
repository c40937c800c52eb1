"""Models of torch as pipelines of processes: their stages, and their schedules by torch's own runtime."""

from partitioner.integrations.torch.pipelines.pipeline import PipelineRank, PipelineStep, run_pipeline
from partitioner.integrations.torch.pipelines.processes import in_processes, process_group
from partitioner.integrations.torch.pipelines.stages import PipelineStages, stages_of

__all__ = [
    "PipelineRank",
    "PipelineStages",
    "PipelineStep",
    "in_processes",
    "process_group",
    "run_pipeline",
    "stages_of",
]
