"""The kinds of GPUs of a pool, and the ways to divide them into groups, copies of pipelines and parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from partitioner.base.argument_types import check_counts
from partitioner.base.errors import OptionError, shown
from partitioner.estimation.named_devices import NamedDevice, named_device
from partitioner.planning.layouts.space import divisors
from partitioner.workload.device_validation import is_amount

Pool = Mapping[str, int | tuple[int, float | None]]


@dataclass(frozen=True)
class PooledKind:
    """`count` equal GPUs in servers of `node`, with `memory` bytes each that may be used."""

    name: str
    device: NamedDevice
    count: int
    memory: float
    node: int


def unused_in(pool: Iterable[PooledKind], used: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return how many GPUs of each kind no pipeline uses; kinds without any are left out.

    Parameters
    ----------
    pool
        The kinds of GPUs.
    used
        How many GPUs of each kind each of the pipelines uses, with its copies.
    """
    left = {kind.name: kind.count for kind in pool}
    for counts in used:
        for name, count in counts.items():
            left[name] -= count
    return {name: count for name, count in left.items() if count}


@dataclass(frozen=True)
class PoolPart:
    """Copies of a pipeline that has groups of GPUs of some kinds, each of which is a stage.

    Parameters
    ----------
    kinds
        The kinds of GPUs that each pipeline has.
    tensor
        For each kind, how many GPUs divide a layer among them.
    groups
        For each kind, how many such groups a pipeline has.
    copies
        How many equal pipelines there are.
    """

    kinds: tuple[PooledKind, ...]
    tensor: tuple[int, ...]
    groups: tuple[int, ...]
    copies: int

    @property
    def stages(self) -> int:
        """The stages of a pipeline."""
        return sum(self.groups)

    @property
    def name(self) -> str:
        """A short name, such as ``"2 x (A100-80 TP4 PP2, RTX 4090 TP1 PP4)"``."""
        parts = [
            f"{kind.name} TP{t} PP{g}"
            for kind, t, g in zip(self.kinds, self.tensor, self.groups, strict=True)
        ]
        return f"{self.copies} x ({', '.join(parts)})"


def kinds_of(pool: Pool, node: int, dtype: str) -> tuple[PooledKind, ...]:
    """Return the kinds of a pool; a CPU is a group alone.

    Raises
    ------
    OptionError
        If the pool is empty, or a number, a name or an amount of memory is not in its range.
    """
    if not isinstance(pool, Mapping) or not pool:
        raise OptionError(f"pool = {shown(pool)}: must name at least one kind with its number")
    found = []
    for name, given in pool.items():
        count, memory = given if isinstance(given, tuple) else (given, None)
        device = named_device(name)
        check_counts(**{f"pool[{name!r}]": count})
        device.speed(dtype)
        if memory is not None and not (is_amount(memory) and memory):
            raise OptionError(f"pool[{name!r}] = {shown(memory)} bytes: must be a number above 0")
        limit = device.memory if memory is None else memory
        found.append(PooledKind(name, device, count, limit, 1 if device.cpu else node))
    return tuple(found)


def parts_on(kinds: Sequence[PooledKind], heads: int, layers: int) -> Iterator[PoolPart]:
    """Yield the parts on all of some kinds, every kind in every pipeline, of at most `layers` stages.

    Tensor degrees divide a server and the number of heads.
    """
    degrees = [[t for t in divisors(kind.node) if t <= kind.count and heads % t == 0] for kind in kinds]
    for tensor in product(*degrees):
        for copies in copies_of([kind.count // t for kind, t in zip(kinds, tensor, strict=True)]):
            groups = tuple(kind.count // (t * copies) for kind, t in zip(kinds, tensor, strict=True))
            if sum(groups) <= layers:
                yield PoolPart(tuple(kinds), tensor, groups, copies)


def copies_of(groups: Sequence[int]) -> list[int]:
    """Return the numbers of copies among which some groups of each kind are divided, smallest first.

    Those between two of them have equal pipelines as the larger one, and are fewer.

    Examples
    --------
    >>> copies_of([8, 3])
    [1, 2, 3]
    """
    counts = {most // each for most in groups for each in range(1, most + 1)}
    return sorted(count for count in counts if count <= min(groups))


def partitions(kinds: Sequence[PooledKind]) -> Iterator[list[tuple[PooledKind, ...]]]:
    """Yield every way to divide some kinds into parts.

    Examples
    --------
    >>> [len(parts) for parts in partitions([1, 2, 3])]
    [1, 2, 2, 2, 3]
    """
    if not kinds:
        yield []
        return
    first, others = kinds[0], list(kinds[1:])
    for size in range(len(others), -1, -1):
        for beside in combinations(others, size):
            left = [kind for kind in others if kind not in beside]
            for parts in partitions(left):
                yield [(first, *beside), *parts]
