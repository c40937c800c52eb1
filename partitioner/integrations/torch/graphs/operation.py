"""What is known of a captured model, as plain data: its operations, its tensors and who reads what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from partitioner.estimation.operator_times import SizedPart


@dataclass(frozen=True)
class Storage:
    """A piece of memory that holds a tensor; views of one tensor share it.

    Parameters
    ----------
    key
        What tells it from other pieces of memory.
    nbytes
        The bytes of it.
    """

    key: int
    nbytes: int


@dataclass(frozen=True)
class Source:
    """A tensor that no operation makes: a parameter, a buffer or an input.

    Parameters
    ----------
    kind
        ``"parameter"``, ``"buffer"``, ``"input"`` or ``"gradient"`` (of an output, for training).
    path
        Its name in the model; a tied parameter has the first one of its names.
    storage
        The memory that it lies in.
    nbytes
        Its bytes.
    count
        The numbers in it.
    """

    kind: str
    path: str
    storage: Storage
    nbytes: int
    count: int


@dataclass(frozen=True)
class AtenOperation:
    """A call of an operator in the captured graph.

    Parameters
    ----------
    name
        Its name in the captured graph.
    operator
        The name of the operation of the exported program that it belongs to; a backward operation belongs to
        the one that it differentiates.
    target
        What is called, such as ``"aten.linear.default"``.
    module
        The path of the innermost module that calls it; empty for the model itself.
    backward
        Whether it belongs to the backward pass.
    reads
        The names of the operations and sources that it reads, each once.
    outputs
        The memory of each tensor that it returns.
    sent
        The bytes of all tensors that it returns.
    flops
        Its floating-point operations.
    bytes_in, bytes_out
        The bytes that it reads from memory and writes to it; none if it only returns a view.
    dtype
        The type of the numbers that it computes with.
    strided
        Whether a tensor that it returns is not contiguous.
    random
        Whether its result is drawn at random.
    parts
        The products of matrices and scores of attention that it computes, with their sizes.
    """

    name: str
    operator: str
    target: str
    module: str
    backward: bool
    reads: tuple[str, ...]
    outputs: tuple[Storage, ...]
    sent: int
    flops: float
    bytes_in: int
    bytes_out: int
    dtype: str
    random: bool
    strided: bool = False
    parts: tuple[SizedPart, ...] = ()


@dataclass(frozen=True)
class Rows:
    """The paths of modules that stand in rows of modules that are alike, and of the containers of rows."""

    members: frozenset[str] = frozenset()
    containers: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Capture:
    """A captured model.

    Parameters
    ----------
    operations
        Its operations in an order in which they may run, forward pass first.
    sources
        The tensors that no operation makes, by the name of their node.
    gradients
        For operations that return the gradient of a parameter, the parameter's path.
    updates
        The operations that return a new value of a buffer.
    changed
        The paths of the buffers and parameters that an operation writes into.
    joined
        Pairs of operators that must share a device: one writes into memory that the other returns, or both
        read a tensor of the model that some operator writes into.
    loss
        The operators of the loss, which all must be on one device.
    modules
        The paths of all modules.
    names
        The first name of every parameter and buffer, by each of its names.
    rows
        The modules that stand in rows of modules that are alike.
    notes
        What is not known of the model, each in one sentence.
    """

    operations: tuple[AtenOperation, ...]
    sources: Mapping[str, Source]
    gradients: Mapping[str, str]
    updates: frozenset[str]
    changed: frozenset[str]
    joined: tuple[tuple[str, str], ...]
    loss: tuple[str, ...]
    modules: tuple[str, ...]
    notes: tuple[str, ...]
    rows: Rows = Rows()
    names: Mapping[str, str] = field(default_factory=dict)
