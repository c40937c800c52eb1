"""Names as short text: consecutive numbers as a range, as many names as there is room for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partitioner.workload.modules import split_number


def ranges(names: Iterable[str]) -> list[str]:
    """Return the names, those that differ in their last number only and follow one another as one text.

    Examples
    --------
    >>> ranges(["embed", "layers.0", "layers.1", "layers.2", "head"])
    ['embed', 'layers.0-2', 'head']
    >>> ranges(["1", "4", "5"])
    ['1', '4-5']
    """
    runs: list[tuple[str, str]] = []  # the first and the last name of each run
    for name in names:
        if runs and _follows(name, runs[-1][1]):
            runs[-1] = (runs[-1][0], name)
        else:
            runs.append((name, name))
    return [first if first == last else _span(first, last) for first, last in runs]


def joined_within(names: Sequence[str], width: int, text: str = "") -> str:
    """Return a text and after it as many of the first names as fit in `width` characters.

    Examples
    --------
    >>> joined_within(["embed", "layers.0-2", "head"], 20), joined_within(["norm", "head"], 20)
    ('embed, ...', 'norm, head')
    """
    for place, name in enumerate(names):
        if place and len(text) + len(name) > width - 5:
            return text.rstrip() + " ..."
        text += name + (", " if place + 1 < len(names) else "")
    return text


def _follows(name: str, before: str) -> bool:
    """Whether two names differ in their last number only, by one."""
    (prefix, number, suffix), earlier = split_number(name), split_number(before)
    return number is not None and earlier == (prefix, number - 1, suffix)


def _span(first: str, last: str) -> str:
    """Return the first name with its last number replaced by both numbers, digit by digit as they are."""
    prefix, _, suffix = split_number(first)
    begin, end = (name[len(prefix) : len(name) - len(suffix)] for name in (first, last))
    return f"{prefix}{begin}-{end}{suffix}"
