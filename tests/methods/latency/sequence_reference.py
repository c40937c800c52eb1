"""The least sum of blocks that run one after another, from the definition, over all chains of ideals."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import numpy as np

from partitioner.methods.latency.sequence.packing import is_counted
from partitioner.problem.variants import ChainProblem, SampleProblem


def least_sum(problem: SampleProblem, chain: ChainProblem, member: list[int]) -> float:
    """The least total length of a sequence of blocks of the chain's supernodes; infinity if there is none."""
    ideals = _ideals(chain)
    counted = is_counted(problem).tolist()

    @cache
    def remaining(ideal: frozenset[int], left: tuple[int, ...]) -> float:
        if len(ideal) == chain.n:
            return 0.0
        best = np.inf
        for larger in ideals:
            if ideal < larger:
                nodes = frozenset(u for u in range(problem.n) if member[u] in larger - ideal)
                for k, count in enumerate(left):
                    if count and _fits(problem, k, nodes):
                        after = tuple(c - (i == k and counted[i]) for i, c in enumerate(left))
                        best = min(best, length(k, nodes) + remaining(larger, after))
        return best

    @cache
    def length(k: int, nodes: frozenset[int]) -> float:
        return sum(subgraph_length(problem, k, nodes, w) for w in (False, True))

    return remaining(frozenset(), tuple(problem.count.tolist()))


def _ideals(chain: ChainProblem) -> list[frozenset[int]]:
    before = [set(chain.predecessors.row(v).tolist()) for v in range(chain.n)]
    subsets = (set(some) for size in range(chain.n + 1) for some in combinations(range(chain.n), size))
    return [frozenset(some) for some in subsets if all(before[v] <= some for v in some)]


def _fits(problem: SampleProblem, k: int, nodes: frozenset[int]) -> bool:
    inside = sorted(nodes)
    return bool(problem.allowed[k, inside].all() and problem.size[inside].sum() <= problem.memory[k])


def subgraph_length(problem: SampleProblem, k: int, block: frozenset[int], backward: bool) -> float:
    """How long the nodes of one pass of a block take on a kind."""
    nodes = {u for u in block if problem.backward[u] == backward}
    time = problem.time[k].sum(axis=0).tolist()
    if not problem.pays[k]:
        finish: dict[int, float] = {}
        for u in sorted(nodes):
            before = problem.predecessors.row(u).tolist()
            finish[u] = time[u] + max((finish[b] for b in before if b in nodes), default=0.0)
        return max(finish.values(), default=0.0)
    into = out = 0.0
    for net, cost in enumerate(problem.nets.cost.tolist()):
        pins, source = set(problem.nets.pins.row(net).tolist()), int(problem.nets.source[net])
        into += cost if source not in nodes and pins & nodes else 0.0
        out += cost if source in nodes and pins - nodes else 0.0
    busy = float(sum(time[u] for u in nodes))
    if problem.communication == "sequential":
        return busy + into + out
    return max(busy, into + out if problem.communication == "overlapped" else max(into, out))
