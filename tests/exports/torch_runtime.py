"""The runtime of torch for schedules, without the processes and modules that it would run."""

from __future__ import annotations

from typing import Any

import pytest

LATER = {  # what the runtime has from torch 2.15 on
    "_max_active_stages": 3,
    "_unshard_lookahead": "full",
    "_defer_reduce_grad_wait": False,
    "_max_outstanding_sends": None,
}


def torch_runtime(ranks: int, stages: int, microbatches: int) -> Any:
    """Return the runtime, which can load, write and simulate schedules; skip if torch is not installed."""
    schedules = pytest.importorskip(
        "torch.distributed.pipelining.schedules", reason="torch is not installed: pip install torch"
    )
    runtime = object.__new__(schedules._PipelineScheduleRuntime)
    runtime.pp_group_size, runtime._num_stages, runtime._n_microbatches = ranks, stages, microbatches
    runtime._stages, runtime.pipeline_order, runtime._defer_pp_recv = [], {}, False
    vars(runtime).update(LATER)
    return runtime
