"""What a call of a model takes and returns, and how a batch becomes calls of one microbatch each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from partitioner.base.errors import OptionError, shown


@dataclass(frozen=True, eq=False)
class CallForm:
    """The form of the call that was captured; its tensors and constants lie in any lists, tuples and dicts.

    Parameters
    ----------
    given
        The structure of the arguments: of a tuple, and a dict of those by name.
    leaves
        For each tensor and constant of the arguments a tensor without data, or the constant.
    returned
        The structure of what the model returns.
    results
        For each tensor that it returns ``...``, and the constants among them.
    """

    given: Any
    leaves: tuple[Any, ...]
    returned: Any
    results: tuple[Any, ...]

    def tensors(self, args: Sequence[Any], kwargs: Mapping[str, Any], count: int) -> list[tuple[Any, ...]]:
        """Return the tensors of each of `count` microbatches, for the arguments of a whole batch.

        A tensor is cut along its first dimension. One that has the shape that it has in a microbatch, such
        as a mask, is given to all of them.

        Raises
        ------
        OptionError
            If the arguments have another form than those that were captured.
        """
        names = self.given.child(1).context
        if {*kwargs} != {*names}:
            raise OptionError(
                f"kwargs = {shown(sorted(kwargs))}: must be {shown(sorted(names))}, as captured"
            )
        found, form = pytree.tree_flatten((tuple(args), {name: kwargs[name] for name in names}))
        if form != self.given:
            rule = f"must have the {self.given.num_leaves} values of the call that was captured"
            raise OptionError(f"batch with {len(found)} values: {rule}, in its structure")
        cut = [self._cut(number, value, count) for number, value in enumerate(found)]
        return list(zip(*(parts for parts in cut if parts), strict=True)) or [()] * count

    def _cut(self, number: int, value: Any, count: int) -> list[Any]:
        """Return a tensor's part of each microbatch; nothing of a constant, which stages have."""
        known, name = self.leaves[number], f"batch: argument {number + 1}"
        if not isinstance(known, torch.Tensor):
            if type(value) is not type(known) or value != known:
                raise OptionError(f"{name} = {shown(value)}: must be {shown(known)}, as captured")
            return []
        shape = tuple(value.shape) if isinstance(value, torch.Tensor) else None
        if shape == tuple(known.shape):
            return [value] * count
        whole = (count * known.shape[0], *known.shape[1:]) if known.ndim else ()
        if shape is None or shape != whole:
            was = f"a tensor of shape {list(shape)}" if shape is not None else shown(value)
            rule = f"must be a tensor of shape {list(whole)} for {count} microbatches"
            raise OptionError(f"{name} is {was}: {rule}, or {list(known.shape)} for all alike")
        return list(value.split(known.shape[0]))

    def result(self, tensors: Sequence[Any]) -> Any:
        """Return what the model returns, from the tensors in it."""
        made = iter(tensors)
        leaves = [next(made) if constant is ... else constant for constant in self.results]
        return pytree.tree_unflatten(leaves, self.returned)

    def merged(self, results: Sequence[tuple[Any, ...]]) -> Any:
        """Return what the model returns for a batch, from the tensors of each microbatch.

        Tensors are joined along their first dimension; those without a dimension become a vector.
        """
        columns = zip(*results, strict=True)
        return self.result([torch.cat(one) if one[0].ndim else torch.stack(one) for one in columns])
