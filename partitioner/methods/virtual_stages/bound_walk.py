"""A walk over the chains of stages that paths through the schedule do not exclude, stage by stage.

The length of a path is linear in the times of stages. With `cost_k[s, a, c]` for what stage s between cuts a
and c adds to path k, with the transfers that it surely pays,

    rest_k[s, a] = min over c of cost_k[s, a, c] + rest_k[s + 1, c]

is the least that the stages from s on add. The first stages of a chain, which reach cut a, are given up if
the length of a path so far plus `rest_k[s, a]` exceeds the limit for any k. The paths are those along the
devices, weighted ones of the linear program, for all chains and for beginnings that take long, and the
longest path of each chain that was reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.method import Settings
from partitioner.methods.virtual_stages.bound_arcs import ArcLists
from partitioner.methods.virtual_stages.bound_nets import FORWARD, JointNets
from partitioner.problem.arrays import Floats, Ints


class WalkPaths(NamedTuple):
    """`k` paths.

    Parameters
    ----------
    path
        Shape (k, stages, 3): how often each has the passes of every stage.
    rest
        Shape (k, stages + 1, m): the least that the stages from each one on add.
    least
        Shape (k, devices, 3): how often each has at least a forward pass, a backward pass, or either of a
        device.
    order
        Shape (k,): the paths, those first that excluded most of late.
    """

    path: Floats
    rest: Floats
    least: Floats
    order: Ints


class WalkPlace(NamedTuple):
    """The chain that the walk has come to.

    Parameters
    ----------
    depth
        Shape (1,): how many stages it has; -1 at the end of the walk.
    cut, following
        Shape (stages + 1,): the cuts, and the places in the lists of stages that come next.
    length, surely
        Shape (stages + 1, k): the lengths of the paths after each number of stages, with the shared transfers
        that these decide, and with those that each of them surely pays.
    source, seen
        Shape (stages + 1, nets): the stage of the source of each net, or -1, and the devices with pins, as
        bits.
    """

    depth: Ints
    cut: Ints
    following: Ints
    length: Floats
    surely: Floats
    source: Ints
    seen: Ints


@njit(cache=True, inner=True)
def charge(paths: WalkPaths, nets: JointNets, place: WalkPlace, c: int) -> bool:
    """Add the transfers that a stage from the last cut to cut `c` decides; return whether there are any."""
    depth, rank = place.depth[0], nets.rank
    a, d, here = place.cut[depth], rank[depth], 1 << rank[depth]
    length, charged = place.length[depth + 1], False
    for e in range(len(nets.made)):
        source, seen = place.source[depth, e], place.seen[depth, e]
        inside = nets.held[c, e] - nets.held[a, e]
        if inside > 0:
            others, out, paying = 0, 0.0, -1
            if nets.sent[c, e] > nets.sent[a, e]:
                source, others = depth, seen & ~here
                if others:
                    out, paying = nets.cost[d, e], depth
            elif source >= 0 and rank[source] != d and not seen & here:
                others, home = here, rank[source]
                if not seen & ~(1 << home):
                    out, paying = nets.cost[home, e], source
            seen |= here
            if others:
                charged = True
                for k in paths.order:
                    if paying >= 0:
                        length[k] += out * paths.path[k, paying, nets.made[e]]
                    if others == here and nets.read[e] == FORWARD:
                        length[k] += nets.cost[d, e] * paths.path[k, depth, 0]
                        continue
                    for x in range(len(nets.cost)):
                        if others >> x & 1:
                            length[k] += nets.cost[x, e] * paths.least[k, x, nets.read[e]]
        place.source[depth + 1, e], place.seen[depth + 1, e] = source, seen
    return charged


@njit(cache=True, nogil=True)
def walk_chains(
    arcs: ArcLists, paths: WalkPaths, nets: JointNets, place: WalkPlace, limit: float, budget: int
) -> int:
    """Go on to the next chain that no path excludes, for at most some steps; return the number of steps."""
    count, order, steps = len(arcs.start), paths.order, 0
    cut, following, length, surely = place.cut, place.following, place.length, place.surely
    depth = place.depth[0] - (place.depth[0] == count)
    while depth >= 0 and steps < budget:
        at = following[depth]
        if at == arcs.end[depth, cut[depth]]:
            depth -= 1
            continue
        c, times, sure, excluded = arcs.items[at], arcs.times[:, at], arcs.surely[:, at], False
        following[depth] += 1
        steps += 1
        for i in range(len(order)):
            k = order[i]
            price, one, other = paths.path[k, depth], length[depth, k], surely[depth, k]
            for x in range(3):
                one += price[x] * times[x]
                other += price[x] * sure[x]
            if max(one, other) + paths.rest[k, depth + 1, c] > limit:
                order[i], order[i // 2] = order[i // 2], k
                excluded = True
                break
            length[depth + 1, k], surely[depth + 1, k] = one, other
        if excluded:
            continue
        place.depth[0] = depth
        if len(nets.made) and charge(paths, nets, place, c):
            for k in range(len(order)):
                if length[depth + 1, k] + paths.rest[k, depth + 1, c] > limit:
                    excluded = True
                    break
            if excluded:
                continue
        depth += 1
        cut[depth] = c
        if depth == count:
            break
        following[depth] = arcs.start[depth, c]
    place.depth[0] = depth
    return steps


@dataclass(frozen=True)
class ChainWalkEffort:
    """How far chains are walked.

    Not varied one by one. Measured together on gnmt training on four devices (``interleaved_1f1b``, two
    stages each, 20 s): the bound is 1.0 % below the makespan, and 10.8 % with walks over pairs of cuts.

    Parameters
    ----------
    first, steps, chunk
        The most steps of the first walk and, at the beginning, of further ones, and the steps after which a
        walk stops for weights for the beginning of its chain.
    excluded, priced
        The steps that take as long as a chain that only a path of its own excludes, and as the weights for
        the beginning of a chain.
    weighted, kept, paths
        The weighted paths and those of the walk before that a walk begins with, and the most paths that it
        compares.
    """

    first: int = 2_000_000
    steps: int = 10_000_000
    chunk: int = 500_000
    excluded: int = 4000
    priced: int = 150_000
    weighted: int = 12
    kept: int = 16
    paths: int = 32


EFFORT = ChainWalkEffort()


@dataclass(eq=False)
class ChainWalk:
    """A walk for open stages and a limit on all paths.

    Parameters
    ----------
    arcs
        The stages that there may be.
    nets
        The nets that are not in the times of stages.
    first
        The paths to begin with, shape (stages, 3) each.
    limit
        The limit on the paths.
    settings
        Say when the run must end.
    most_steps
        The steps after which the walk is given up.
    """

    arcs: ArcLists
    nets: JointNets
    first: Sequence[Floats]
    limit: float
    settings: Settings
    most_steps: int = EFFORT.steps
    steps: int = 0
    begun: int = 0

    def __post_init__(self) -> None:
        count, cuts = self.arcs.stages, self.arcs.cuts
        self.own = self.nets.rank[None, :] == np.arange(self.nets.rank.max() + 1)[:, None]
        most = max(EFFORT.paths, len(self.first))
        self.known = WalkPaths(
            np.empty((most, count, 3)),
            np.empty((most, count + 1, cuts)),
            np.empty((most, len(self.own), 3)),
            np.arange(len(self.first)),
        )
        self.place = WalkPlace(
            np.zeros(1, dtype=np.int64),
            np.zeros(count + 1, dtype=np.int64),
            np.zeros(count + 1, dtype=np.int64),
            np.zeros((count + 1, most)),
            np.zeros((count + 1, most)),
            np.full((count + 1, len(self.nets.made)), -1),
            np.zeros((count + 1, len(self.nets.made)), dtype=np.int64),
        )
        self.before = np.zeros(count + 1, dtype=np.int64)
        for k, path in enumerate(self.first):
            self._enter(k, path)

    def _enter(self, k: int, path: Floats) -> None:
        """Write a path at place `k`."""
        self.known.path[k] = path
        self.known.rest[k] = self.arcs.rest(path)
        for rank, own in enumerate(self.own):
            forward, backward = path[own, :2].min(axis=0)
            self.known.least[k, rank] = forward, backward, min(forward, backward)

    @property
    def paths(self) -> list[Floats]:
        """The paths that it compares, shape (stages, 3) each, those first that excluded most of late."""
        return list(self.known.path[self.known.order])

    @property
    def stages(self) -> int:
        """How many stages the chain has that it has come to."""
        return max(0, int(self.place.depth[0]))

    @property
    def ended(self) -> bool:
        """Whether there are no more chains."""
        return bool(self.place.depth[0] < 0)

    @property
    def given_up(self) -> bool:
        """Whether the walk has been cut short."""
        return not self.ended and (self.settings.expired or self.steps >= self.most_steps)

    def following(self) -> Ints | None:
        """Return the cuts of the next chain, shape (stages + 1,); None at the end, or where it is to stop.

        It stops after some steps since :meth:`skip`, so that the beginning of its chain can be excluded.
        """
        place, left = self.place, EFFORT.chunk - (self.steps - self.begun)
        args = self.arcs, self.known, self.nets, place, self.limit
        self.steps += walk_chains(*args, max(0, min(left, self.most_steps - self.steps)))
        return place.cut.copy() if left > 0 and place.depth[0] == self.arcs.stages else None

    @property
    def same(self) -> int:
        """The number of first stages of its chain that are the same as at the last :meth:`skip`."""
        same = self.before[: self.stages + 1] == self.place.cut[: self.stages + 1]
        return self.stages if same.all() else int(np.argmin(same)) - 1

    def beginning(self, stages: int) -> ArcLists:
        """Return the stages of the chains that begin with some stages of that which it has come to."""
        return self.arcs.beginning(self.place.cut[: stages + 1])

    def compare(self, path: Floats) -> None:
        """Compare another path, in place of the one that excludes least if there are many.

        Its length so far leaves out what the device's stages share.
        """
        known, place = self.known, self.place
        self.steps += EFFORT.excluded
        count = len(known.order)
        k = count if count < len(known.path) else int(known.order[-1])
        order = np.roll(known.order, 1) if k < count else np.append(k, known.order)
        self.known = known._replace(order=order)
        self.known.order[0] = k
        self._enter(k, path)
        for stage, at in enumerate(place.following[: self.stages] - 1):
            for length, times in ((place.length, self.arcs.times), (place.surely, self.arcs.surely)):
                length[stage + 1, k] = length[stage, k] + np.dot(path[stage], times[:, at])

    def skip(self, stages: int) -> None:
        """Leave out the other chains with the same first stages, as many as given; none if that is 0."""
        self.before, self.begun = self.place.cut.copy(), self.steps
        if stages:
            self.place.depth[0] = stages - 1
