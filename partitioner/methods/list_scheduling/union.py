"""Disjoint sets that are united (union-find), compiled: one member of each set is its root."""

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Ints


@njit(cache=True, nogil=True)
def root(parent: Ints, member: int) -> int:
    """Return the root of the member's set; the path to it is halved.

    Parameters
    ----------
    parent
        Shape (members,): for each member one that is nearer to the root; for the root itself.
    member
        Any member of the set.
    """
    while parent[member] != member:
        parent[member] = parent[parent[member]]
        member = parent[member]
    return int(member)
