"""Operators as a plain event queue, written from the rule that `evaluate` states, not from its code."""

from __future__ import annotations

from tests.evaluation.stepped import Stepped


def start_times(case: Stepped) -> dict[int, float]:
    """When each node starts: moment by moment all that ends, then one device looks for work, and again."""
    nodes, inputs = range(len(case.time)), [e[1] for e in case.edges]
    missing = [inputs.count(v) for v in nodes]
    arrived: dict[int, float] = dict.fromkeys(nodes, 0.0)
    start: dict[int, float] = {}
    running: dict[int, tuple[float, int]] = {}  # by device: when it ends, and the node
    waiting = {v for v in nodes if not missing[v]}
    case.arrival.clear()
    case.free.clear()
    now = 0.0
    while waiting or running:
        ending = [d for d, (end, _) in running.items() if end == now]
        if ending:
            d = min(ending, key=lambda d: case.rank.index(running[d][1]))
            u = running.pop(d)[1]
            for e, (source, v) in enumerate(case.edges):
                if source == u:
                    arrived[v] = max(arrived[v], case.sent(e, u, case.home[v], now))  # type: ignore[arg-type]
                    missing[v] -= 1
                    waiting |= set() if missing[v] else {v}
            continue
        ready = [
            (case.home[v], arrived[v], case.rank.index(v), v)
            for v in waiting
            if arrived[v] <= now and case.home[v] not in running
        ]
        if ready:
            d, _, _, v = min(ready)
            start[v], running[d] = now, (now + case.time[v], v)
            waiting.remove(v)
            continue
        later = [end for end, _ in running.values()] + [arrived[v] for v in waiting if arrived[v] > now]
        now = min(later)
    return start
