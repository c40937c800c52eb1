"""All layouts of a model on a cluster that a runtime can run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from partitioner.formats.llm.decoder import Decoder, Experts
from partitioner.planning.layouts.layout import Cluster, ClusterLayout
from partitioner.planning.layouts.runtimes import ENDS, Runtime

MOST_VIRTUAL = 8
MOST_MICROBATCH = 16


@dataclass(frozen=True)
class LayoutSpace:
    """The layouts of a model with a batch of `global_batch` sequences that take all GPUs of a cluster.

    Devices that divide sequences are in one server. With a fused kernel of attention nothing is left for
    selective recomputation to do, so `selective` says whether to try it.
    """

    decoder: Decoder
    cluster: Cluster
    global_batch: int
    runtime: Runtime
    selective: bool = False

    def __iter__(self) -> Iterator[ClusterLayout]:
        """Yield each layout that the runtime can run, once."""
        for tensor, context, pipeline in product(
            self._tensor(), self._context(), divisors(self.cluster.gpus)
        ):
            data, rest = divmod(self.cluster.gpus, tensor * context * pipeline)
            if data and not rest and tensor * context <= self.cluster.node:
                yield from self._of_degrees(tensor, context, pipeline, data)

    def _of_degrees(self, tensor: int, context: int, pipeline: int, data: int) -> Iterator[ClusterLayout]:
        choices = product(
            self._experts(data * context),
            [b for b in powers(MOST_MICROBATCH) if self.global_batch % (data * b) == 0],
            [each for each in self.runtime.recompute if self.selective or each != "selective"],
            self.runtime.zero[pipeline > 1],
            self._schedules(pipeline),
        )
        for expert, microbatch, recompute, zero, (schedule, virtual) in choices:
            if (zero and data == 1) or not self._in_one_kind_of_link(tensor, expert):
                continue
            layout = ClusterLayout(
                tensor, pipeline, data, microbatch, virtual, context, expert, schedule, recompute, zero
            )
            if not self.runtime.refuses(layout, self.decoder, self.global_batch):
                yield layout

    def _in_one_kind_of_link(self, tensor: int, expert: int) -> bool:
        """Whether devices that divide experts are all in one server, or more than a server has."""
        return tensor * expert <= self.cluster.node or expert > self.cluster.node

    def _tensor(self) -> list[int]:
        """Return the tensor degrees: those that divide a server."""
        return divisors(self.cluster.node) if "tensor" in self.runtime.parallel else [1]

    def _context(self) -> list[int]:
        return powers(self.cluster.node) if "context" in self.runtime.parallel else [1]

    def _experts(self, most: int) -> list[int]:
        counts = [b.network.count for b in self.decoder.blocks if isinstance(b.network, Experts)]
        if not counts or "expert" not in self.runtime.parallel:
            return [1]
        return [e for e in divisors(min(counts)) if e <= most]

    def _schedules(self, pipeline: int) -> Iterator[tuple[str, int]]:
        """Yield schedules with their numbers of stages on a device."""
        if pipeline == 1:
            yield "1f1b", 1
            return
        blocks = len(self.decoder.blocks)
        for schedule, most in self.runtime.schedules.items():
            largest = min(most or MOST_VIRTUAL, (blocks + ENDS) // pipeline)
            least = 1 if most == 1 else 2
            for virtual in range(least, largest + 1):
                if most or 0 in (blocks % (pipeline * virtual), (blocks + ENDS) % (pipeline * virtual)):
                    yield schedule, virtual


def divisors(number: int) -> list[int]:
    """Return the divisors of a number, smallest first.

    Examples
    --------
    >>> divisors(12)
    [1, 2, 3, 4, 6, 12]
    """
    return [k for k in range(1, number + 1) if number % k == 0]


def powers(most: int) -> list[int]:
    """Return the powers of two up to a number.

    Examples
    --------
    >>> powers(8)
    [1, 2, 4, 8]
    """
    return [1 << k for k in range(most.bit_length()) if 1 << k <= most]
