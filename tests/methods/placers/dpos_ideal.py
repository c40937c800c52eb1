"""What FastT's Theorem 1 speaks of: the optimum without transfers, and the transfers along a chain."""

from __future__ import annotations

from itertools import pairwise

from partitioner.problem.tasks import Tasks


def best_without_transfers(tasks: Tasks) -> float:
    """The least makespan on equal devices if transfers took no time, over all orders of start.

    A task starts when its inputs are made and a device is free; of the free ones the latest to become so is
    taken, which leaves the most to the others.
    """
    time = tasks.time[0].tolist()
    before = [tasks.before.items[a:b].tolist() for a, b in pairwise(tasks.before.start.tolist())]

    def go(finish: dict[int, float], free: tuple[float, ...], last: float, best: float) -> float:
        if len(finish) == tasks.n:
            return min(best, max(finish.values()))
        for v in range(tasks.n):
            if v in finish or any(u not in finish for u in before[v]):
                continue
            start = max([min(free), *(finish[u] for u in before[v])])
            if start < last or start + time[v] >= best:
                continue
            taken = max(range(len(free)), key=lambda d: (free[d] <= start, free[d]))
            after = (*free[:taken], start + time[v], *free[taken + 1 :])
            best = min(best, go({**finish, v: start + time[v]}, after, start, best))
        return best

    return go({}, (0.0,) * len(tasks.limit), 0.0, float("inf"))


def largest_transfers(tasks: Tasks) -> float:
    """C_max: the largest sum of transfers along a chain."""
    longest = [0.0] * tasks.n
    for v in range(tasks.n):
        row = slice(tasks.before.start[v], tasks.before.start[v + 1])
        for u, tensor in zip(
            tasks.before.items[row].tolist(), tasks.before_tensor[row].tolist(), strict=True
        ):
            length = max((tasks.slope * tasks.cost[tensor] + tasks.intercept).ravel().tolist())
            longest[v] = max(longest[v], longest[u] + length)
    return max(longest)
