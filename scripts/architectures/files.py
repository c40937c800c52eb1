"""Instance files: compact JSON with one node or edge per line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SEPARATORS = (",", ":")


def render(instance: dict[str, Any]) -> str:
    """Return the text of an instance file, the same for the same instance.

    Parameters
    ----------
    instance : dict
        Object in the instance format.

    Returns
    -------
    str
        JSON with one node or edge per line, ended by a newline.
    """
    fields = ",\n".join(f"{json.dumps(key)}:{_value(value)}" for key, value in instance.items())
    return f"{{\n{fields}\n}}\n"


def write(instance: dict[str, Any], path: Path) -> None:
    """Write an instance file, and the folder that it belongs in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render(instance), encoding="utf-8")


def summary(name: str, instance: dict[str, Any]) -> str:
    """Return the row of an instance in the table of the folder's read-me file."""
    cells: Sequence[object] = (
        f"`{name}`",
        len(instance["nodes"]),
        len(instance["edges"]),
        instance["maxFPGAs"],
        instance["maxCPUs"],
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _value(value: object) -> str:
    if not isinstance(value, list):
        return json.dumps(value, separators=SEPARATORS)
    lines = ",\n".join(json.dumps(item, separators=SEPARATORS) for item in value)
    return f"[\n{lines}\n]"
