"""The module that each operation is counted to, and the label of the node that it becomes a part of."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from partitioner.integrations.torch.graphs.operation import Capture, Rows

OPERATOR, MODULE, BLOCK = GRANULARITIES = ("operator", "module", "block")


def layers_of(capture: Capture, granularity: str) -> dict[str, str]:
    """Return the path of the module that each operator is counted to: of its block, or the innermost one.

    What the whole model calls between its modules is counted to the module that made the latest of what it
    reads; a view of it to the module before it, and it counts as made where the tensor was. The loss counts
    to the last module.
    """
    module = {op.operator: op.module for op in reversed(capture.operations) if not op.backward}
    blocks = BlockLabels(capture.modules, capture.rows) if granularity == BLOCK else None
    found: dict[str, str] = {}
    loss = set(capture.loss)
    maker = {op.name: op.operator for op in capture.operations}
    made, latest = _made(capture), ""
    for op in capture.operations:
        if op.backward or found.get(op.operator):
            continue
        path = module[op.operator]
        own = path if blocks is None else blocks.of(path)
        before = [
            found[maker[name]]
            for name in sorted(op.reads, key=lambda name: made.get(name, -1))
            if maker.get(name) in found
        ]
        source = next((layer for layer in reversed(before) if layer), "")
        if op.operator in loss:
            found[op.operator] = ""  # until the last module is known
            continue
        latest = own or (latest if source and not op.bytes_out else source) or latest
        found[op.operator] = latest if own or source else ""
    filled = _filled(found | dict.fromkeys(loss & found.keys(), latest))
    return filled | _of_backward_alone(capture, filled, blocks)


def _of_backward_alone(
    capture: Capture, forward: Mapping[str, str], blocks: BlockLabels | None
) -> dict[str, str]:
    """Return the module of each operator that has operations of the backward pass only."""
    found: dict[str, str] = {}
    for op in capture.operations:
        if op.operator not in forward and not found.get(op.operator):
            found[op.operator] = op.module if blocks is None else blocks.of(op.module)
    otherwise = next(reversed(list(forward.values())), "model")
    return {operator: layer or otherwise for operator, layer in found.items()}


def _made(capture: Capture) -> dict[str, int]:
    """Return for each operation when what it returns was computed, as a position in the program."""
    made: dict[str, int] = {}
    written: dict[int, int] = {}
    for i, op in enumerate(capture.operations):
        keys = [storage.key for storage in op.outputs]
        made[op.name] = i if op.bytes_out else max(written.get(key, -1) for key in keys)
        written |= dict.fromkeys(keys, made[op.name])
    return made


def _filled(found: Mapping[str, str]) -> dict[str, str]:
    """Return the layers with the next known one for operators that read no module's output."""
    filled: dict[str, str] = {}
    following = next((layer for layer in reversed(list(found.values())) if layer), "model")
    for operator, layer in reversed(list(found.items())):
        following = layer or following
        filled[operator] = following
    return filled


class BlockLabels:
    """The blocks of a model: the outermost members of its rows of modules, and what lies beside these.

    Parameters
    ----------
    modules
        The paths of all modules.
    rows
        The modules in rows of modules that are alike, which are blocks, and the containers of rows, which
        are none.

    Examples
    --------
    >>> paths = ["model", "model.embedding", "model.layers", "model.layers.3", "model.layers.3.up"]
    >>> blocks = BlockLabels(paths)
    >>> [blocks.of(path) for path in ("model.layers.3.up", "model.embedding", "model", "")]
    ['model.layers.3', 'model.embedding', '', '']
    """

    def __init__(self, modules: Collection[str], rows: Rows | None = None) -> None:
        self._rows = rows or Rows()
        self._enclosing = {
            around
            for path in modules
            for around, *inside in (prefixes(path)[i:] for i in range(path.count(".") + 1))
            if any(self._is_member(prefix) for prefix in inside)
        }

    def _is_member(self, path: str) -> bool:
        listed = path.rpartition(".")[2].isdigit() and path not in self._rows.containers
        return listed or path in self._rows.members

    def of(self, path: str) -> str:
        """Return the block of a module; empty for a module that encloses blocks."""
        for prefix in prefixes(path):
            if self._is_member(prefix) or prefix not in self._enclosing:
                return prefix
        return ""


def prefixes(path: str) -> list[str]:
    """Return the paths of the modules around a module, outermost first, and its own.

    Examples
    --------
    >>> prefixes("model.layers.3")
    ['model', 'model.layers', 'model.layers.3']
    """
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
