"""The sentences of an explanation on the value, the bottleneck and the critical path."""

from __future__ import annotations

from collections.abc import Sequence

from partitioner.explanations.bottleneck import Bottleneck
from partitioner.explanations.critical_path import CriticalPath, PathEntry
from partitioner.explanations.room import Room
from partitioner.explanations.tensors import TensorTime
from partitioner.explanations.wording import Wording, listed, memory, nodes, quoted, share

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
    parts = {"computing": one.compute, "receiving tensors": one.receiving, "sending tensors": one.sending}
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
