"""Conversion of the user's values for the fields of a graph to arrays; raises `WorkloadError` if it fails."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from partitioner.base.errors import Flaw, WorkloadError, shown

MEMORY_PARTS = ("parameters", "gradients", "optimizer", "activations", "workspace")
T = TypeVar("T")
Place = Callable[[int], str]


def by_kind(values: Any, name: str) -> Mapping[str, Any]:
    """Return the values, which must be a mapping from device kinds."""
    if not isinstance(values, Mapping):
        raise WorkloadError(
            [Flaw("graph", name, shown(values), "must be a mapping from device kind to values")]
        )
    return values


def listed(values: Iterable[T], name: str) -> list[T]:
    """Return the values as a list; numpy scalars become Python's."""
    try:
        given = list(values)
    except TypeError:
        raise WorkloadError([Flaw("graph", name, shown(values), "must be a sequence")]) from None
    return [value.item() if isinstance(value, np.generic) else value for value in given]


def numbers(values: Any, n: int, name: str, where: Place) -> NDArray[np.float64]:
    """Return a float for each of `n` nodes or edges, from a sequence of that length or from a scalar."""
    return _column(values, n, name, where, "iuf", _number, "must be a number").astype(np.float64)


def flags(values: Any, n: int, name: str, where: Place) -> NDArray[np.bool_]:
    """Return a bool for each of `n` nodes or edges, from a sequence of that length or from a scalar."""
    return _column(values, n, name, where, "b", _flag, "must be true or false, or 1 or 0").astype(np.bool_)


def classes(
    labels: Iterable[Hashable | None] | None, n: int, name: str, where: Place
) -> tuple[NDArray[np.int64], tuple[Hashable, ...]]:
    """Return each label as a number in order of first appearance, -1 for None, and the distinct labels."""
    given: Sequence[Hashable | None] = [None] * n if labels is None else listed(labels, name)
    _require_length(given, n, name)
    rule = "must be an integer or a text, or None for no class"
    bad = [i for i, label in enumerate(given) if not _is_label(label)]
    if bad:
        raise WorkloadError([Flaw(where(i), name, shown(given[i]), rule) for i in bad])
    code: dict[Hashable, int] = {}
    codes = [-1 if label is None else code.setdefault(label, len(code)) for label in given]
    return np.array(codes, dtype=np.int64), tuple(code)


def titles(names: Iterable[str] | None, ids: Sequence[Hashable]) -> tuple[str, ...]:
    """Return a title for each node; by default its id."""
    given = list(map(str, ids)) if names is None else listed(names, "names")
    _require_length(given, len(ids), "names")
    return tuple(map(str, given))


def positions(edges: Any, ids: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return the positions of both ends of each edge among the ids, shape (m, 2)."""
    try:
        pairs = [(source, target) for source, target in edges]
    except (TypeError, ValueError):
        rule = "must be pairs of node ids, the producer first"
        raise WorkloadError([Flaw("graph", "edges", shown(edges), rule)]) from None
    position = {node: i for i, node in enumerate(ids)}
    unknown = [
        Flaw(f"edge {shown(source)} -> {shown(target)}", "", shown(end), "is not the id of a node")
        for source, target in pairs
        for end in (source, target)
        if not isinstance(end, Hashable) or end not in position
    ]
    if unknown:
        raise WorkloadError(unknown)
    found = [(position[source], position[target]) for source, target in pairs]
    return np.array(found, dtype=np.int64).reshape(len(found), 2)


def length(time: Mapping[str, Any]) -> int:
    """Return for how many nodes there are times."""
    return max((1 if np.isscalar(row) else len(listed(row, "time")) for row in time.values()), default=0)


def _column(
    values: Any, n: int, name: str, where: Place, sound: str, convert: Callable[[Any], Any], rule: str
) -> NDArray[Any]:
    try:
        array: NDArray[Any] = np.asarray(values)
    except (TypeError, ValueError):  # lists of different lengths
        raise WorkloadError([Flaw("graph", name, shown(values), rule)]) from None
    if array.shape not in ((), (n,)):
        rule = f"must have shape ({n},), or be one value"
        raise WorkloadError([Flaw("graph", name, f"shape {array.shape}", rule)])
    if array.dtype.kind not in sound:
        given = list(values) if array.shape else [values]
        converted = [convert(value) for value in given]
        flaws = [
            Flaw(where(i) if array.shape else "graph", name, shown(given[i]), rule)
            for i, value in enumerate(converted)
            if value is None
        ]
        if flaws:
            raise WorkloadError(flaws)
        array = np.array(converted).reshape(array.shape)
    return np.broadcast_to(array, (n,))


def _number(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        return None
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except TypeError:  # a complex number
        return None


def _flag(value: Any) -> bool | None:
    truth = isinstance(value, bool | int | float | np.bool_ | np.number) and value in (0, 1)
    return bool(value) if truth else None


def _is_label(label: object) -> bool:
    return label is None or (isinstance(label, Hashable) and label == label and _is_hashable(label))


def _is_hashable(value: Hashable) -> bool:
    try:
        hash(value)
    except TypeError:  # a tuple that holds a list
        return False
    return True


def _require_length(values: Sequence[object], n: int, name: str) -> None:
    if len(values) != n:
        rule = f"must be {n}, one for each node"
        raise WorkloadError([Flaw("graph", name, f"{len(values)} values", rule)])


def first_of_equal(edges: NDArray[np.int64], cost: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the positions of the first edges of each ends and cost, in increasing order.

    Examples
    --------
    >>> first_of_equal(np.array([[0, 1], [0, 2], [0, 1], [0, 1]]), np.array([1.0, 1.0, 2.0, 1.0])).tolist()
    [0, 1, 2]
    """
    pairs = np.sort(edges @ (int(edges.max(initial=0)) + 1, 1))
    if (pairs[1:] != pairs[:-1]).all():  # the usual case, which takes much less time
        return np.arange(len(cost))
    return np.sort(np.unique(np.column_stack((edges, cost)), axis=0, return_index=True)[1])


def frozen(values: Any, name: str, dtype: type) -> NDArray[Any]:
    """Return a read-only copy of a field of a graph as an array."""
    try:
        array: NDArray[Any] = np.array(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise WorkloadError([Flaw("graph", name, shown(values), "must be an array of numbers")]) from error
    array.setflags(write=False)
    return array
