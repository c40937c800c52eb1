"""Every number of an explanation's text, compared with a recomputation from the arrays of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from partitioner import Devices, Explanation, Graph, Plan, solve
from tests.analysis.explanations.numbers import check_numbers
from tests.analysis.explanations.recomputed import DeviceCost, costs, kind_of

Expected = Iterator[tuple[str, Sequence[float]]]
LINKS = 0.5


def check_explanation(graph: Graph, devices: Devices, plan: Plan, found: Explanation) -> int:
    """Compare all sentences on a plan of a chain for throughput; return how many numbers there were."""
    known = costs(graph, devices, plan.placement)
    sections = found.sections()
    expected = {
        "Value": value_numbers(plan, known),
        "Bottleneck": load_numbers(plan, known, found),
        "What bounds it": move_numbers(graph, devices, plan, known, found),
        "Memory": memory_numbers(graph, devices, plan, known, found),
        "What a change would buy": change_numbers(graph, devices, plan, found),
    }
    assert set(sections) == set(expected)
    count = 0
    for title, texts in sections.items():
        wanted = list(expected[title])
        assert len(texts) == len(wanted), (title, texts, wanted)
        for text, (part, numbers) in zip(texts, wanted, strict=True):
            assert part in text, (text, part)
            check_numbers(text, numbers)
            count += len(numbers)
    return count


def largest(known: dict[str, DeviceCost]) -> tuple[str, DeviceCost]:
    """The device with the largest load."""
    return max(known.items(), key=lambda item: item[1].load)


def value_numbers(plan: Plan, known: dict[str, DeviceCost]) -> Expected:
    assert plan.bound == plan.value
    yield "it is optimal", [largest(known)[1].load]


def load_numbers(plan: Plan, known: dict[str, DeviceCost], found: Explanation) -> Expected:
    name = found.bottlenecks[0].device
    cost = known[name]
    assert cost.load == pytest.approx(largest(known)[1].load, rel=1e-12)
    yield name, [plan.stages.index(name) + 1, len(plan.stages), cost.load]
    parts = [cost.compute, cost.receiving, cost.sending]
    transfers = cost.receiving + cost.sending
    yield (
        "computing decides" if cost.compute >= transfers else "transfers decide",
        [number for part in parts for number in (part, part / cost.load)],
    )
    slowest = sorted(cost.nodes.values(), reverse=True)[:5]
    for one in found.bottlenecks[0].nodes:
        assert cost.nodes[one.node] == pytest.approx(one.time, rel=1e-12)
    alone = len(cost.nodes) == 1
    yield "its", slowest if alone else [len(cost.nodes), *slowest, sum(slowest) / cost.compute]
    times = sorted((each.time for each in cost.tensors), reverse=True)[:5]
    for tensor in found.bottlenecks[0].tensors:
        same = [
            each.time
            for each in cost.tensors
            if (each.node, each.direction, each.devices)
            == (tensor.node, tensor.direction, frozenset(tensor.devices))
        ]
        assert any(time == pytest.approx(tensor.time, rel=1e-12) for time in same)
    shown = [time for time in times if time]
    if len(cost.tensors) <= 1 or not shown:
        yield "exchange", shown or ([len(cost.tensors)] if cost.tensors else [])
    else:
        yield "exchanges", [len(cost.tensors), *shown, sum(shown) / transfers]


def move_numbers(
    graph: Graph, devices: Devices, plan: Plan, known: dict[str, DeviceCost], found: Explanation
) -> Expected:
    if found.bottlenecks[0].groups == 1:
        assert not found.moves
        yield "must stay together", []
        return
    refused = {move.verdict for move in found.moves}
    if refused:
        yield "memory of another device bounds" if "memory" in refused else "No move", []
    old = largest(known)[1].load
    for move in found.moves:
        moved = costs(graph, devices, {**plan.placement, **dict.fromkeys(move.nodes, move.device)})
        _, cost = largest(moved)
        lead = ([len(move.nodes)] if len(move.nodes) > 1 else []) + [
            plan.stages.index(move.device) + 1,
            cost.load,
        ]
        assert abs(plan.stages.index(move.device) - plan.stages.index(found.bottlenecks[0].device)) == 1
        if move.verdict == "slower":
            assert cost.load >= old * (1 - 1e-9)
            assert moved[move.slowest].load == pytest.approx(cost.load, rel=1e-12)
            yield "no less", [*lead, cost.load]
            continue
        limit = kind_of(devices, move.fullest).memory
        held = moved[move.fullest].memory
        assert move.verdict == "memory" and limit is not None and held > limit and cost.load < old
        yield f"{move.fullest} would then hold", [*lead, 1 - cost.load / old, held, held - limit, limit]


def memory_numbers(
    graph: Graph, devices: Devices, plan: Plan, known: dict[str, DeviceCost], found: Explanation
) -> Expected:
    limits = {name: kind_of(devices, name).memory for name in known}
    filled = {
        name: cost.memory / limit for name, cost in known.items() if (limit := limits[name]) and cost.memory
    }
    name = max(filled, key=lambda each: filled[each])
    held, limit = known[name].memory, limits[name] or 0.0
    yield f"{name} is the fullest" if len(filled) == 1 else "is the fullest", [
        held, limit, held / limit, limit - held,
    ]  # fmt: skip
    full = sum(share >= 0.95 for share in filled.values())
    if full > 1:
        yield "are filled", [full, len(filled), 0.95]
    kinds = tuple(replace(kind, memory=None) for kind in devices.kinds)
    best = solve(graph, replace(devices, kinds=kinds))
    if best.value >= plan.value * (1 - 5e-4):
        yield "Memory is not the limit", []
        return
    answer = next(one for one in found.what_ifs if one.name == "unlimited_memory")
    assert answer.plan is not None and found.excess is not None
    loose = costs(graph, devices, answer.plan.placement)
    over = {
        each: cost.memory - (kind_of(devices, each).memory or cost.memory) for each, cost in loose.items()
    }
    worst = max(over, key=lambda each: over[each])
    yield (
        f"{worst} would hold",
        [best.value, 1 - best.value / plan.value, loose[worst].memory, over[worst]],
    )


def change_numbers(graph: Graph, devices: Devices, plan: Plan, found: Explanation) -> Expected:
    """Each change is made here once more, and solved apart from the explanation."""
    kind = kind_of(devices, found.bottlenecks[0].device)
    grown = replace(kind, count=kind.count + 1)
    yield from _change(
        f"one more device of kind {kind.name}",
        [kind.count + 1, kind.count],
        plan,
        solve(
            graph, replace(devices, kinds=tuple(grown if each is kind else each for each in devices.kinds))
        ),
    )
    limited = tuple(
        each if each.memory is None else replace(each, memory=each.memory * 1.1) for each in devices.kinds
    )
    yield from _change("10% more memory", [0.1], plan, solve(graph, replace(devices, kinds=limited)))
    asked = {one.name for one in found.what_ifs}
    if "faster_links" in asked:
        yield from _change(
            "twice the speed", [], plan, solve(replace(graph, cost=graph.cost * LINKS), devices)
        )
    if "one_more_replica" in asked:
        yield from _change("up to 2 devices", [2], plan, solve(graph, devices, replicas=2))
    yield "no schedule", []


def _change(words: str, numbers: list[float], plan: Plan, best: Plan) -> Expected:
    assert best.status == "optimal"
    change = abs(best.value / plan.value - 1)
    yield words, [*numbers, best.value, *([change] if change >= 5e-4 else [])]
