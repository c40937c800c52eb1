"""What a worker process does: it makes one of the small calls, and says how many kernels that compiled."""

from __future__ import annotations

from contextlib import suppress

from partitioner.base.clock import METER, collect_seldom
from partitioner.base.compiled import kernel_folder
from partitioner.base.errors import PartitionerError
from partitioner.methods.dp import lattice  # noqa: F401 - has kernels, so that their folder is known
from partitioner.methods.solvers.backends.backend import Answer, SolverLimits, Tell
from partitioner.planning.warm_up.calls import small_calls

UNKEPT = (
    "kernels cannot be kept on this machine: neither the package's folder, nor the user's cache folder, nor "
    "the system's temporary folder can be written"
)


def run_call(number: int, limits: SolverLimits, tell: Tell) -> Answer:
    """Make one of the small calls; the answer has the number of compiled kernels and their folder."""
    if kernel_folder() is None:
        return Answer("failed", native=UNKEPT)
    collect_seldom()
    before = METER.kernels
    with METER.watched(lambda: None), suppress(PartitionerError):  # a call may need a solver that is missing
        small_calls()[number]()
    return Answer("optimal", (METER.kernels - before, kernel_folder()))
