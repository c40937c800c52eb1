"""The sentences of an explanation on what bounds the value: other devices, memory, and changes."""

from __future__ import annotations

from collections.abc import Sequence

from partitioner.explanations.borders import BETTER, MEMORY, RANKS, RULE, SLOWER, BorderMove
from partitioner.explanations.memory import NEARLY, MemoryUse
from partitioner.explanations.what_ifs.answers import UNLIMITED, WhatIf
from partitioner.explanations.wording import SAME, Wording, memory, nodes, relative_change, share

VERDICTS = {
    BETTER: "The plan can be improved: a node of the bottleneck can move to another device.",
    MEMORY: "The memory of another device bounds the value: a better border is refused.",
    RULE: "A rule bounds the value: a better border is refused.",
    SLOWER: "No move of nodes off the bottleneck that was tried {improves} the value.",
}


def move_sentences(words: Wording, value: float, groups: int, moves: Sequence[BorderMove]) -> list[str]:
    """Return what moving nodes off the bottleneck would change, and what refuses it."""
    if groups == 1:
        return ["The nodes of the bottleneck must stay together, so that its load cannot be divided."]
    return [*_verdict(words, moves), *(_move(words, value, move) for move in moves)]


def _verdict(words: Wording, moves: Sequence[BorderMove]) -> list[str]:
    """Return what the moves say together: the first of their verdicts by weight."""
    found = {move.verdict for move in moves}
    return [VERDICTS[name].format(improves=words.phrases.improves) for name in RANKS if name in found][:1]


def _move(words: Wording, value: float, move: BorderMove) -> str:
    where = f"stage {move.stage} ({move.device})" if move.stage else move.device
    lead = f"With {nodes(move.names)} moved from {move.source} to {where}"
    lead += f" the plan {words.phrases.would} {words.value(move.value)}"
    lower = f"{lead}, {words.changed(relative_change(value, move.value))}"
    if move.verdict == BETTER:
        return f"{lower}: such a move improves the plan."
    if move.verdict == MEMORY:
        held = f"{move.fullest} would then hold {memory(move.held)}"
        return f"{lower}, but {held}, {memory(move.excess)} more than its memory of {memory(move.limit)}."
    if move.verdict == RULE:
        return f"{lower}, but that breaks a rule: {move.broken}."
    more = f"the largest load would then be {words.time(move.load)} on {move.slowest}"
    if words.counted:
        more = f"{move.slowest} would then have room for the fewest"
    return f"{lead}, which {words.phrases.no_better}: {more}."


def memory_sentences(
    words: Wording, use: Sequence[MemoryUse], excess: MemoryUse | None, what_ifs: Sequence[WhatIf]
) -> list[str]:
    """Return how full the fullest device is, and whether and by how much memory is the limit."""
    if not use:
        return ["No device that holds nodes has a memory limit."]
    fullest, full = use[0], sum(one.share >= NEARLY for one in use)
    left = f"{memory(fullest.free)} are free" if fullest.free >= 0 else f"{memory(-fullest.free)} too much"
    held = f"holds {memory(fullest.held)} of {memory(fullest.limit)} ({share(fullest.held, fullest.limit)})"
    found = [f"{fullest.device} is the fullest device: it {held}, {left}."]
    found += [f"{full} of {len(use)} devices are filled to at least {NEARLY:.0%}."] if full > 1 else []
    unlimited = [one for one in what_ifs if one.name == UNLIMITED and one.value is not None]
    return found + [text for one in unlimited for text in _without_limit(words, one, excess)]


def _without_limit(words: Wording, one: WhatIf, excess: MemoryUse | None) -> list[str]:
    assert one.value is not None
    if one.change is None or one.change > -SAME or excess is None:
        return ["Memory is not the limit: the best plan found without a memory limit takes no less."]
    more = f"{excess.device} would hold {memory(excess.held)}, {memory(-excess.free)} more than it has"
    return [
        f"Memory is the limit: without it the best plan found takes {words.value(one.value)}, "
        f"{words.changed(one.change)}; {more}."
    ]


def change_sentences(words: Wording, what_ifs: Sequence[WhatIf]) -> list[str]:
    """Return what each change of the question buys, with its proof; the section on memory has one of them."""
    return [_change(words, one) for one in what_ifs if one.name != UNLIMITED or one.value is None]


def _change(words: Wording, one: WhatIf) -> str:
    lead = f"With {one.words}" if one.name else "If it is solved again as it is,"
    if one.value is None or one.bound is None:
        return f"{lead} {one.against}."
    says, near = words.phrases, words.near(one.value, one.bound)
    open_ = f"no plan {says.better} than {words.value(one.bound)}: it is {near}"
    proof = "that is optimal" if words.proven(one.value, one.bound) else open_
    after = f"{words.value(one.value)}, {words.changed(one.change)}"
    return f"{lead} the best plan found {says.takes} {after}{_time(words, one)}; {proof}."


def _time(words: Wording, one: WhatIf) -> str:
    """Return the time per sample of a plan whose value is a number of samples, after a comma."""
    if not words.counted or one.plan is None:
        return ""
    return f", at {words.time(one.plan.bottleneck.load)} per sample"
