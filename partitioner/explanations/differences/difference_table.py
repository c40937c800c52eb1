"""The difference of two plans as text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import RenderableType
from rich.text import Text

from partitioner.evaluation.text.figures import amount, figure
from partitioner.evaluation.text.names import joined_within, ranges
from partitioner.evaluation.text.tables import WIDE, columns, figure_table, render
from partitioner.explanations.differences.moved import DeviceChange, MovedNodes
from partitioner.explanations.wording import Wording, listed, relative_change

MOST_GROUPS = 12
NARROW_NAMES, WIDE_NAMES = 36, 92
FIGURES = ("load", "then", "change", "memory", "then", "change", "nodes", "then")


def difference_lines(
    words: Wording,
    value: tuple[float, float],
    violations: tuple[int, int],
    node_count: int,
    moved: Sequence[MovedNodes],
) -> list[str]:
    """Return the values of two plans and how many nodes moved, as sentences."""
    before, after = value
    second = f"the second one {words.value(after)}, {words.changed(relative_change(before, after))}"
    found = [f"The first plan {words.phrases.takes} {words.value(before)}, {second}."]
    for number, broken in zip(("first", "second"), violations, strict=True):
        found += [f"The {number} plan breaks {broken} rule{'s' if broken > 1 else ''}."] if broken else []
    count = sum(len(each.nodes) for each in moved)
    return [*found, f"{count} of {node_count} nodes are on another device." if count else "No node moved."]


def difference_table(
    lines: Sequence[str], devices: Sequence[DeviceChange], moved: Sequence[MovedNodes], width: int | None
) -> str:
    """Return the lines, a table of devices, and a table of the nodes that moved, at most `width` columns."""
    wide = columns(width) >= WIDE
    table = figure_table(wide, ("device",), FIGURES)
    for each in devices:
        table.add_row(*map(Text, (_title(each), *_figures(each))))
    parts: list[RenderableType] = [*map(Text, lines), "", table, *_renamed(devices)]
    if moved:
        where = figure_table(wide, ("from", "to"), ("nodes",))
        where.add_column("names", overflow="fold")
        for group in moved[:MOST_GROUPS]:
            names = joined_within(ranges(group.names), WIDE_NAMES if wide else NARROW_NAMES)
            where.add_row(*map(Text, (group.source, group.target, str(len(group.nodes)), names)))
        parts += ["", where]
        parts += [f"... and {len(moved) - MOST_GROUPS} more groups"] if len(moved) > MOST_GROUPS else []
    return render(parts, width)


def _title(each: DeviceChange) -> str:
    """Return the name of a device, with the number of devices that share its stage if any does."""
    old, new = each.copies
    if max(old, new) <= 1:
        return each.device
    return f"{each.device} x{old}" if old == new else f"{each.device} x{old} then x{new}"


def _figures(each: DeviceChange) -> tuple[str, ...]:
    return (
        *map(figure, each.load),
        _signed(each.load[1] - each.load[0], figure),
        *map(amount, each.memory),
        _signed(each.memory[1] - each.memory[0], amount),
        *map(str, each.nodes),
    )


def _signed(difference: float, text: Callable[[float], str]) -> str:
    """Return a difference with its sign."""
    if not difference:
        return "0"
    return f"{'+' if difference > 0 else '-'}{text(abs(difference))}"


def _renamed(devices: Sequence[DeviceChange]) -> list[Text]:
    """Return a line with the devices that have another name in the second plan."""
    pairs = [f"{each.device} is {each.renamed}" for each in devices if each.renamed not in ("", each.device)]
    return [Text(f"in the second plan {listed(pairs)}: equal devices are matched")] if pairs else []
