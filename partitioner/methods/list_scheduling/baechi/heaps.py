"""Binary heaps in the rows of arrays: entries are pairs of a key and an item, the smallest on top."""

from __future__ import annotations

from partitioner.base.compiled import njit
from partitioner.problem.arrays import Floats, Ints


@njit(cache=True, nogil=True)
def push(key: Floats, item: Ints, count: Ints, row: int, new_key: float, new_item: int) -> None:
    """Add an entry to the heap in a row."""
    i = count[row]
    count[row] = i + 1
    while i > 0:
        up = (i - 1) >> 1
        if key[row, up] < new_key or (key[row, up] == new_key and item[row, up] < new_item):
            break
        key[row, i], item[row, i] = key[row, up], item[row, up]
        i = up
    key[row, i], item[row, i] = new_key, new_item


@njit(cache=True, nogil=True)
def pop(key: Floats, item: Ints, count: Ints, row: int) -> None:
    """Remove the smallest entry of the heap in a row."""
    last = count[row] - 1
    count[row] = last
    replace_top(key, item, count, row, key[row, last], item[row, last])


@njit(cache=True, nogil=True)
def replace_top(key: Floats, item: Ints, count: Ints, row: int, new_key: float, new_item: int) -> None:
    """Replace the smallest entry of the heap in a row."""
    size, i = count[row], 0
    while 2 * i + 1 < size:
        down = 2 * i + 1
        if down + 1 < size and (
            key[row, down + 1] < key[row, down]
            or (key[row, down + 1] == key[row, down] and item[row, down + 1] < item[row, down])
        ):
            down += 1
        if new_key < key[row, down] or (new_key == key[row, down] and new_item < item[row, down]):
            break
        key[row, i], item[row, i] = key[row, down], item[row, down]
        i = down
    key[row, i], item[row, i] = new_key, new_item
