"""The beam search over the lattice of ideals for plans with true start times.

A split in which every device holds one subgraph is a sequence of ideals: its subgraphs and CPU nodes in the
order in which they start. The start of each depends only on what it reads, so plans are built block by
block. Of the plans that hold the same supernodes with the same numbers of devices only the best few are
kept; if all were kept, the search would be exact for inference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from partitioner.methods.dp.ideals import Lattice
from partitioner.methods.latency.sequence.beam_kernel import advance
from partitioner.methods.latency.sequence.sequence_table import SequenceModel, SequenceStates
from partitioner.methods.method import Part, Settings
from partitioner.problem.arrays import Floats, Ints, Rows, rows_of
from partitioner.problem.precedence import distinct

SLICE = 500_000


class Beam(NamedTuple):
    """The arguments of the search in addition to costs.

    Parameters
    ----------
    following
        See :class:`SequenceStates`.
    wait_start, waits
        Rows over supernodes: the nodes that each waits for.
    later_start, later
        Rows over nodes: the nodes that wait for each.
    tail, after
        Shape (N,): the longest path in best times from each node on, with and without the node.
    length_weight
        Weight of the total length of a plan's blocks in its rating, in addition to its last finish.
    """

    following: Ints
    wait_start: Ints
    waits: Ints
    later_start: Ints
    later: Ints
    tail: Floats
    after: Floats
    length_weight: float


class Labels(NamedTuple):
    """The plans kept: up to W for each ideal and vector of used devices.

    Parameters
    ----------
    key
        Shape (I, S, W): the ratings, ascending.
    times
        Shape (I, S, W, 4): when the last block is done, forward and backward, and lower bounds on the end of
        both passes.
    total
        Shape (I, S, W): the total length of the blocks.
    origin, label, kind
        Shape (I, S, W): the ideal and the plan before the last block, and the kind of the last block.
    done
        Shape (I, S * W, N): when each node is done.
    """

    key: Floats
    times: Floats
    total: Floats
    origin: NDArray[np.int32]
    label: NDArray[np.int32]
    kind: NDArray[np.int8]
    done: Floats


def label_bytes(model: SequenceModel) -> int:
    """Return the bytes that one label takes."""
    return 80 + 8 * len(model.member)


class BeamSearch:
    """A beam search over one lattice.

    Parameters
    ----------
    model, lattice, states
        The model, a lattice over its supernodes, and the vectors of used devices.
    width
        How many plans are kept for each ideal and vector of used devices.
    length_weight
        See :class:`Beam`.
    cutoff
        Only plans that end before this are looked for.
    """

    def __init__(
        self,
        model: SequenceModel,
        lattice: Lattice,
        states: SequenceStates,
        width: int,
        length_weight: float,
        cutoff: float,
    ) -> None:
        self.model, self.lattice, self.states, self.cutoff = model, lattice, states, cutoff
        waits, later = _waits(model), _later(model)
        tail, after = _paths(model, later)
        self.beam = Beam(states.following, *waits, *later, tail, after, length_weight)
        shape = lattice.size, len(states.following), width
        self.labels = Labels(
            key=np.full(shape, np.inf),
            times=np.zeros((*shape, 4)),
            total=np.zeros(shape),
            origin=np.full(shape, -1, np.int32),
            label=np.zeros(shape, np.int32),
            kind=np.zeros(shape, np.int8),
            done=np.zeros((shape[0], shape[1] * shape[2], len(model.member))),
        )
        self.labels.key[0, 0, 0] = 0.0
        self.steps = 0

    def run(self, settings: Settings, step_limit: int) -> None:
        """Walk up the lattice; no plan is found if a limit stops the walk."""
        ideal, last = 0, self.lattice.size - 1
        while ideal < last and not settings.expired and self.steps <= step_limit:
            ideal, steps = advance(
                self.lattice, self.model.costs, self.beam, self.labels, self.cutoff, ideal, SLICE
            )
            self.steps += steps

    def plans(self, most: int) -> list[list[Part]]:
        """Return the blocks of the best plans, at most `most`."""
        key = self.labels.key[-1]
        order = np.argsort(key, axis=None, kind="stable")[:most]
        return [self._blocks(int(i)) for i in order if np.isfinite(key.flat[i])]

    def _blocks(self, label: int) -> list[Part]:
        blocks, ideal, width = [], self.lattice.size - 1, self.labels.key.shape[2]
        while ideal:
            at = ideal, label // width, label % width
            before, label = int(self.labels.origin[at]), int(self.labels.label[at])
            blocks.append(Part(int(self.labels.kind[at]), self.lattice.difference(ideal, before)))
            ideal = before
        return blocks[::-1]


def _waits(model: SequenceModel) -> Rows:
    """Return rows over supernodes of the nodes that each waits for."""
    costs, member = model.costs, model.member
    later = np.repeat(np.arange(len(member)), np.diff(costs.before_start))
    pairs = np.stack((member[later], costs.before), axis=1)
    pairs = distinct(pairs[pairs[:, 0] != member[pairs[:, 1]]])
    return rows_of(pairs[:, 0], pairs[:, 1], model.chain.n)


def _later(model: SequenceModel) -> Rows:
    costs = model.costs
    later = np.repeat(np.arange(len(model.member)), np.diff(costs.before_start))
    return rows_of(costs.before, later, len(model.member))


def _paths(model: SequenceModel, later: Rows) -> tuple[Floats, Floats]:
    """Return the longest path from every node on, with and without the node, shape (N,) each."""
    costs = model.costs
    time = np.where(np.isfinite(costs.work[:, 0])[:, model.member], costs.time, np.inf).min(axis=0)
    after = np.zeros(len(time))
    for u in costs.node[::-1].tolist():
        row = later.row(u)
        after[u] = (time[row] + after[row]).max(initial=0.0)
    return time + after, after
