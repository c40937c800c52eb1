"""The module of a network that a node of an ONNX model comes from."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

SCOPES = "pkg.torch.onnx.name_scopes"  # metadata of torch's exporter: paths of modules, then the node's name


def path_of(node: Any) -> str | None:
    """Return the path of the innermost module of a node of a model, None for a node of no module."""
    return module_path(node.name, {entry.key: entry.value for entry in node.metadata_props})


def module_path(name: str, metadata: Mapping[str, str]) -> str | None:
    """Return the path of the innermost module of a node of this name.

    It is told by the metadata of torch's exporter, or else by a name with slashes, whose last part is the
    operator.

    Examples
    --------
    >>> module_path("/layers/layers.0/fc/MatMul", {}), module_path("MatMul_3", {})
    ('layers.0.fc', None)
    >>> module_path("node_linear", {SCOPES: "['', 'layers.0', 'layers.0.fc', 'linear']"})
    'layers.0.fc'
    """
    scopes = _scopes(metadata.get(SCOPES, ""))
    if scopes:
        return scopes[-2] if len(scopes) > 1 and scopes[-2] else None
    path: list[str] = []
    for part in [part for part in name.split("/") if part][:-1]:
        if path and part.startswith(path[-1] + "."):  # torch's exporter repeats a list's name in its items
            path.pop()
        path.append(part)
    return ".".join(path) or None


def layer_path(path: str | None) -> str | None:
    """Return the part of a module's path up to its first number: the layer of a network.

    Examples
    --------
    >>> layer_path("model.layers.3.mlp.up"), layer_path("model.norm")
    ('model.layers.3', 'model.norm')
    """
    if path is None:
        return None
    parts = path.split(".")
    first = next((i for i, part in enumerate(parts) if part.isdigit()), len(parts))
    return ".".join(parts[: first + 1])


def _scopes(text: str) -> list[str]:
    """Return the texts of a Python list, none if it is another text."""
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return []
    return found if isinstance(found, list) and all(isinstance(each, str) for each in found) else []
