"""The explanation of a plan, as data and as text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from partitioner.analysis.explanations.borders import BETTER, MEMORY, RANKS, RULE, SLOWER, BorderMove
from partitioner.analysis.explanations.bottleneck import Bottleneck
from partitioner.analysis.explanations.critical_path import CriticalPath, PathEntry
from partitioner.analysis.explanations.memory import NEARLY, MemoryUse
from partitioner.analysis.explanations.room import Room
from partitioner.analysis.explanations.tensors import TensorTime
from partitioner.analysis.explanations.what_ifs.answers import UNLIMITED, WhatIf
from partitioner.analysis.explanations.wording import (
    SAME,
    Wording,
    listed,
    memory,
    nodes,
    quoted,
    relative_change,
    share,
)
from partitioner.evaluation.text.tables import render
from partitioner.evaluation.time_parts import WORDS


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a plan takes as long as it does, and what would change that.

    Parameters
    ----------
    objective, split
        What the plan was made for.
    value
        The value of the plan, in the unit of the graph's times; samples in flight for ``"capacity"``.
    bound
        No plan with this split has a better value; None if that is not known, or the plan breaks a rule.
    violations
        The rules that the plan breaks; empty for a plan that can be used.
    stages
        How many stages the plan has, 0 if the split has none.
    communication
        How the parts of a load add up, see :class:`partitioner.Devices`.
    bottlenecks
        The device that determines the value; one for each pass for objective ``"gpipe"``; none where the
        value is the end of a schedule.
    path
        The critical path, where the value is the end of a schedule; else None.
    moves
        What moving nodes off the bottleneck would change.
    memory
        The memory of the devices with a limit, the fullest first.
    excess
        By which device and how much the best plan without a memory limit exceeds the memory; None if it
        does not, or is not known.
    what_ifs
        What changes of the question would buy.
    time_unit
        The unit of times, empty if the graph does not give it.
    time_per_sample
        For objective ``"capacity"`` the largest load; else None.
    parts
        What the value is made of, as in :class:`partitioner.Evaluation`.
    """

    objective: str
    split: str
    value: float
    bound: float | None
    violations: tuple[str, ...]
    stages: int
    communication: str
    bottlenecks: tuple[Bottleneck, ...]
    path: CriticalPath | None
    moves: tuple[BorderMove, ...]
    memory: tuple[MemoryUse, ...]
    excess: MemoryUse | None
    what_ifs: tuple[WhatIf, ...]
    time_unit: str = ""
    time_per_sample: float | None = None
    parts: Mapping[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        where = ", ".join(one.device for one in self.bottlenecks) or "the critical path"
        return f"<Explanation: {self.objective} {self.value:.6g}, determined by {where}>"

    def sections(self) -> dict[str, list[str]]:
        """Return the sentences of the explanation by the title of their section."""
        words = Wording(self.objective, self.path is None, self.time_unit)
        loads = [
            text
            for one in self.bottlenecks
            for text in bottleneck_sentences(words, self.stages, self.communication, one)
        ]
        groups = min((one.groups for one in self.bottlenecks), default=0)
        found = {
            "Value": value_sentences(
                words, self.split, self.value, self.bound, self.violations, self.time_per_sample, self.parts
            ),
            "Bottleneck": loads if self.path is None else path_sentences(words, self.path),
            "What bounds it": move_sentences(words, self.value, groups, self.moves),
            "Memory": memory_sentences(words, self.memory, self.excess, self.what_ifs),
            "What a change would buy": change_sentences(words, self.what_ifs),
        }
        return {title: texts for title, texts in found.items() if texts}

    def summary(self, width: int | None = None) -> str:
        """Return the explanation as sentences, in lines of at most `width` columns."""
        parts: list[RenderableType] = []
        for title, texts in self.sections().items():
            parts += [Text(title), *(Padding(Text(text), (0, 0, 0, 2)) for text in texts), ""]
        return render(parts, width)

    def to_json(self) -> str:
        """Return all figures as one JSON object, without plans; infinity is null."""
        plain = {name: value for name, value in vars(self).items() if name != "what_ifs"}
        record = {name: _plain(value) for name, value in plain.items()}
        record["value"] = self.value if math.isfinite(self.value) else None
        return json.dumps(record | {"what_ifs": [one.as_dict() for one in self.what_ifs]}, indent=1)


def _plain(value: object) -> object:
    """Return a field as plain data: a record as its fields, several of them as a list."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return asdict(value) if hasattr(value, "__dataclass_fields__") else value  # type: ignore[call-overload]


# The sentences of an explanation on what bounds the value: other devices, memory, and changes.

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


# The sentences of an explanation on the value, the bottleneck and the critical path.

SHOWN_RULES = 5
DECIDING = {
    "compute": "computing",
    "transfers": "transfers",
    "receiving": "receiving tensors",
    "sending": "sending tensors",
    "exchange": "the exchange of weights among the replicas",
}
MODELS = {
    "sequential": "one after another",
    "overlapped": "computing at the same time as transfers",
    "duplex": "receiving, computing and sending at the same time",
}


def value_sentences(
    words: Wording,
    split: str,
    value: float,
    bound: float | None,
    violations: Sequence[str],
    time_per_sample: float | None,
    parts: Mapping[str, float],
) -> list[str]:
    """Return the value of a plan and how near it is to the bound, and the rules that the plan breaks."""
    says, better = words.phrases, f"no {split} split {words.phrases.better}"
    found = [f"The plan {says.takes} {words.value(value)}."]
    if bound is not None and words.proven(value, bound):
        found = [f"The plan {says.takes} {words.value(value)}, and {better}: it is optimal."]
    elif bound is not None:
        near = words.near(value, bound)
        found.append(f"N{better[1:]} than {words.value(bound)}: the plan is {near}.")
    if time_per_sample is not None:
        found.append(f"It takes {words.time(time_per_sample)} per sample.")
    if parts.get("bubble"):  # else they are those of the bottleneck
        made = [f"{words.time(time)} ({share(time, value)}) {WORDS[name]}" for name, time in parts.items()]
        found.append(f"On the device with the largest load it is made of {listed(made)}.")
    if violations:
        rules = "1 rule" if len(violations) == 1 else f"{len(violations)} rules"
        found.append(f"The plan breaks {rules} and cannot be used as it is.")
    return found + [f"Broken rule: {rule}." for rule in violations[:SHOWN_RULES]]


def bottleneck_sentences(words: Wording, stages: int, communication: str, one: Bottleneck) -> list[str]:
    """Return what a bottleneck is made of: its room for samples, or parts, nodes and tensors."""
    if one.room is not None:
        return _room(_place(one, stages), one.room)
    busy = f"it is busy for {words.time(one.load)} per sample"
    return [
        f"{_place(one, stages)} is the bottleneck{_pass(one)}: {busy}.",
        _parts(words, communication, one),
        *_slowest_nodes(words, one),
        *_slowest_tensors(words, one),
    ]


def _place(one: Bottleneck, stages: int) -> str:
    if not one.stages:
        return one.device
    numbers = f"Stage{'s' if len(one.stages) > 1 else ''} {listed([str(n) for n in one.stages])} of {stages}"
    if one.devices == 1:
        return f"{numbers} ({one.device})"
    return f"{numbers} ({one.device}, one of {one.devices} devices that share the stage)"


def _pass(one: Bottleneck) -> str:
    return f" of the {one.part} pass" if one.part else ""


def _room(place: str, room: Room) -> list[str]:
    """Return how many samples fit a stage, what its memory holds, and which nodes keep most of a sample."""
    held = f"It holds {memory(room.held)} without a sample, of a memory of {memory(room.limit)}"
    return [
        f"{place} is the bottleneck: it has room for {room.capacity:,} samples in flight.",
        f"{held}, and keeps {memory(room.cache)} of every sample.",
        _caches(room),
    ]


def _caches(room: Room) -> str:
    texts = [f"{quoted(node.name)} ({memory(node.cache)})" for node in room.nodes]
    if room.node_count == 1:
        return f"The only node with a cache is {texts[0]}."
    together = share(sum(node.cache for node in room.nodes), room.cache)
    most = f"Of its {room.node_count} nodes with a cache those that keep most of a sample are"
    return f"{most} {listed(texts)}: {together} of it."


def _parts(words: Wording, communication: str, one: Bottleneck) -> str:
    """Return the sentence on the parts of a load, with their shares in it."""
    parts = {"computing": one.compute - one.collectives - one.updates}
    parts |= {"in collectives of the devices that divide layers": one.collectives} if one.collectives else {}
    parts |= {"updating parameters": one.updates} if one.updates else {}
    parts |= {"receiving tensors": one.receiving, "sending tensors": one.sending}
    parts |= {"exchanging weights": one.exchange} if one.exchange else {}
    texts = [f"{words.time(time)} ({share(time, one.load)}) {name}" for name, time in parts.items()]
    decides = f"{DECIDING[one.limit]} decide{_s(one)} it"
    return f"It spends {listed(texts)}, {MODELS[communication]}, so that {decides}."


def _s(one: Bottleneck) -> str:
    return "" if one.limit == "transfers" else "s"


def _slowest_nodes(words: Wording, one: Bottleneck) -> list[str]:
    if not one.nodes or not one.compute:
        return []
    texts = [f"{quoted(node.name)} ({words.time(node.time)})" for node in one.nodes]
    together = share(sum(node.time for node in one.nodes), one.compute)
    if one.node_count == 1:
        return [f"Its only node is {texts[0]}."]
    return [f"Of its {one.node_count} nodes the slowest are {listed(texts)}: {together} of the computing."]


def _slowest_tensors(words: Wording, one: Bottleneck) -> list[str]:
    if not one.tensor_count:
        return ["It exchanges no tensors with other devices."]
    slow = [tensor for tensor in one.tensors if tensor.time]
    if not slow:
        return [f"The {one.tensor_count} tensors that it exchanges take no time."]
    texts = [_tensor(words, tensor) for tensor in slow]
    if one.tensor_count == 1:
        return [f"The only tensor that it exchanges is {texts[0]}."]
    together = share(sum(tensor.time for tensor in slow), one.receiving + one.sending)
    most = f"Of the {one.tensor_count} tensors that it exchanges the slowest are"
    return [f"{most} {listed(texts)}: {together} of the transfers."]


def _tensor(words: Wording, tensor: TensorTime) -> str:
    ends = f"{tensor.direction} {listed(tensor.devices)}"
    return f"that of {quoted(tensor.name)} {ends} ({words.time(tensor.time)})"


def path_sentences(words: Wording, path: CriticalPath) -> list[str]:
    """Return where the time of a critical path goes."""
    spent = [f"{words.time(time)} ({share(time, path.end)}) on {name}" for name, time in path.devices]
    waiting = f"{words.time(path.waiting)} ({share(path.waiting, path.end)})"
    return [
        f"The critical path has {path.count} entries and ends at {words.time(path.end)}.",
        f"It spends {listed(spent)}, and {waiting} between entries, while tensors travel.",
        f"Its longest entries are {listed([_entry(words, entry) for entry in path.longest])}.",
    ]


def _entry(words: Wording, entry: PathEntry) -> str:
    names = nodes([str(node) for node in entry.nodes])
    return f"{names} on {entry.device} from {words.time(entry.start)} for {words.time(entry.time)}"
