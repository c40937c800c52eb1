"""Which operators write into memory of others, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitioner.base.errors import Flaw, WorkloadError
from partitioner.integrations.torch.graphs.owners import storage_keys, storages_written


class Writes:
    """The operators that write into each piece of memory, in the order of a graph.

    Parameters
    ----------
    graph
        A graph of torch.
    """

    def __init__(self, graph: Any) -> None:
        self._at: dict[int, list[Any]] = {}
        self._position = {node: i for i, node in enumerate(graph.nodes)}
        for node in self._position:
            for key in storages_written(node):
                self._at.setdefault(key, []).append(node)

    def last_before(self, reader: Any, read: Any) -> Any:
        """Return what wrote into the memory of `read` last before a reader, `read` itself if nothing did."""
        own, end = self._position[read], self._position[reader]
        writers = {self._position[one]: one for key in storage_keys(read) for one in self._at.get(key, ())}
        between = [i for i in writers if own < i < end]
        return writers[max(between)] if between else read

    def may_follow(self, read: Any) -> bool:
        """Whether an operator may write into the memory of `read`, or a caller: inputs and outputs."""
        shared = read.op == "placeholder" or any(one.op == "output" for one in read.users)
        return shared or any(key in self._at for key in storage_keys(read))

    def written(self, node: Any) -> list[int]:
        """Return the pieces of memory that a node reads or returns and that some operator writes into."""
        touched = {key for one in (node, *node.all_input_nodes) for key in storage_keys(one)}
        return [key for key in touched if key in self._at]


def require_inputs_kept(graph: Any, owner: Mapping[str, str]) -> None:
    """Raise if an operator writes into an input, of which a device has only a copy.

    Raises
    ------
    WorkloadError
        Naming the operators.
    """
    inputs = {key: node.name for node in graph.find_nodes(op="placeholder") for key in storage_keys(node)}
    flaws = [
        Flaw(f"operator {owner[node.name]}", "", "", f"must not write into input {inputs[key]} of the model")
        for node in graph.nodes
        for key in storages_written(node)
        if key in inputs
    ]
    if flaws:
        raise WorkloadError(flaws)
