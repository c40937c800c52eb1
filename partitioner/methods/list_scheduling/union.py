"""Sets that are united, compiled: each has one member that stands for it."""

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Ints


@njit(cache=True, nogil=True)
def root(parent: Ints, member: int) -> int:
    """The member that stands for the set; paths to it are halved on the way.

    Parameters
    ----------
    parent
        For each member one that is nearer to what stands for its set; that itself where nothing is nearer.
    member
        Any member.
    """
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return int(member)
