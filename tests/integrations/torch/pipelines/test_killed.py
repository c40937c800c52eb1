"""A process that is killed is named, and not one of those that lost their connection to it."""

from __future__ import annotations

import os
import signal

import pytest

from partitioner import PartitionerError

torch = pytest.importorskip("torch", reason="pipelines need torch")
from partitioner.integrations.torch.pipelines.processes import in_processes  # noqa: E402

pytestmark = [pytest.mark.xdist_group("gloo"), pytest.mark.filterwarnings("ignore")]


def test_the_rank_that_was_killed_is_named() -> None:
    def work(rank: int) -> None:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        torch.distributed.recv(torch.zeros(1), 1)

    with pytest.raises(PartitionerError, match=r"rank 1 of the pipeline was killed, .*SIGKILL"):
        in_processes(work, 2, seconds=60)
