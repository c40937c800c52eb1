"""The explanation of a plan, as data and as text."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from partitioner.evaluation.text.tables import render
from partitioner.explanations.borders import BorderMove
from partitioner.explanations.bottleneck import Bottleneck
from partitioner.explanations.critical_path import CriticalPath
from partitioner.explanations.limits import change_sentences, memory_sentences, move_sentences
from partitioner.explanations.memory import MemoryUse
from partitioner.explanations.sentences import bottleneck_sentences, path_sentences, value_sentences
from partitioner.explanations.what_ifs.answers import WhatIf
from partitioner.explanations.wording import Wording


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
                words, self.split, self.value, self.bound, self.violations, self.time_per_sample
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
