"""The bytes of tensors that autograd keeps for the backward pass, at each moment of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any

import torch


class KeptBytes:
    """Counts the memory of tensors that are kept, each piece of memory once, while its context is open.

    Parameters
    ----------
    own
        Tensors that are there anyway, such as parameters, whose memory does not count.
    batch
        Tensors that are cut into microbatches; of these the microbatches that are kept count.

    Examples
    --------
    >>> weight = torch.ones(2, requires_grad=True)
    >>> kept = KeptBytes([weight])
    >>> with kept.counting():
    ...     result = (weight * torch.ones(2)).sum()
    >>> kept.peak
    8
    """

    def __init__(self, own: Iterable[Any], batch: Iterable[Any] = ()) -> None:
        self._own = {_memory_of(tensor) for tensor in own}
        self._batch = {_memory_of(tensor) for tensor in batch}
        self._users: Counter[tuple[int, int]] = Counter()
        self._bytes = 0
        self.peak = 0

    def counting(self) -> AbstractContextManager[Any]:
        """Return a context in which tensors that autograd saves are counted."""
        found: AbstractContextManager[Any] = torch.autograd.graph.saved_tensors_hooks(
            lambda tensor: _Kept(self, tensor), lambda kept: kept.tensor
        )
        return found

    def change(self, tensor: Any, by: int) -> None:
        """Note that a tensor is kept once more (1) or less (-1)."""
        memory = _memory_of(tensor)
        if memory in self._own:
            return
        part = memory in self._batch
        key = (memory, int(tensor.data_ptr()) if part else 0)
        before = self._users[key]
        self._users[key] += by
        if 0 in (before, self._users[key]):
            self._bytes += by * int(tensor.nbytes if part else tensor.untyped_storage().nbytes())
        self.peak = max(self.peak, self._bytes)


class _Kept:
    """A tensor that is kept for as long as this lives."""

    def __init__(self, count: KeptBytes, tensor: Any) -> None:
        self.count, self.tensor = count, tensor if tensor.is_leaf else tensor.detach()
        count.change(self.tensor, 1)

    def __del__(self) -> None:
        self.count.change(self.tensor, -1)


def _memory_of(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
