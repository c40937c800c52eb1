"""Heaps of states in two arrays: the states below each one (skew heaps), compiled."""

# mypy: allow-untyped-decorators, allow-untyped-defs

from __future__ import annotations

from partitioner.base.compiled import njit


@njit(cache=True)
def meld(one, other, priority, a, b):
    """Return the top of the heap that holds all states of the heaps with tops `a` and `b`; -1 if empty."""
    if a < 0 or b < 0:
        return max(a, b)
    if priority[b] < priority[a]:
        a, b = b, a
    top = a
    while True:
        rest = other[a]
        other[a] = one[a]
        if rest < 0:
            one[a] = b
            return top
        if priority[b] < priority[rest]:
            rest, b = b, rest
        one[a] = rest
        a = rest


@njit(cache=True)
def pop(one, other, priority, top, level):
    """Take the state of least priority from the heap of a level and return it."""
    state = top[level]
    top[level] = meld(one, other, priority, one[state], other[state])
    return state
