"""Classes of cuts that differ in light supernodes alone: a bound over them is coarse, and found much sooner.

Let H be the heavy supernodes. Two cuts are of one class if they hold the same of H. With `time(s, a, c)` for
what stage s takes between cuts a and c,

    time(s, A, C) = min over cuts a of class A and c of class C of time(s, a, c)

is no more than what any stage between these classes takes, so that each chain of stages is a chain of classes
which takes no longer. What light supernodes take is lost at most, and they are chosen to take little: without
the lightest, which take 2 % together, BERT-6 has 482 classes of 3,776 cuts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from partitioner.methods.dp.reduced import all_but_lightest
from partitioner.methods.virtual_stages.bound_arcs import ArcLists
from partitioner.methods.virtual_stages.cut_costs import StageCuts
from partitioner.problem.arrays import Bools, Ints, rows_of
from partitioner.problem.problem import Nets, Problem


def heavy_supernodes(problem: Problem, kept: Bools, share: float) -> Bools:
    """Return all supernodes but the lightest, which take at most a share of the work; shape (n,).

    `kept`, shape (n,), are never among the lightest.

    Examples
    --------
    >>> from partitioner.problem.contract import contract
    >>> from partitioner import DeviceKind, Devices, Graph
    >>> graph = Graph.from_arrays({"gpu": [5.0, 1.0, 94.0]}, [(0, 1), (1, 2)])
    >>> problem = contract(graph, Devices((DeviceKind("gpu", 2),)))
    >>> heavy_supernodes(problem, np.array([False] * 3), 0.02).tolist()
    [True, False, True]
    """
    work = problem.work()[problem.count > 0]
    most = np.where(np.isfinite(work), work, 0.0).max(axis=0)
    return all_but_lightest(np.where(kept, np.inf, most), share * most.sum())


@dataclass(frozen=True, eq=False)
class CutClasses:
    """Classes of cuts, the empty one first, and that of all supernodes last.

    Parameters
    ----------
    whole
        The `m` cuts, all of them.
    heavy
        Shape (n,): the supernodes in which cuts of two classes differ.
    """

    whole: StageCuts
    heavy: Bools

    def __len__(self) -> int:
        return len(self._classes[0])

    @cached_property
    def _classes(self) -> tuple[Ints, Ints]:
        held = np.packbits(self.whole.member[:, self.heavy], axis=1)
        _, least, of = np.unique(held, axis=0, return_index=True, return_inverse=True)
        least[-1] = len(self.whole) - 1
        return least, of.ravel()

    @property
    def least(self) -> Ints:
        """Shape (classes,): the least cut of each, but that of all supernodes for the last one.

        These cuts are nested as classes are.
        """
        return self._classes[0]

    @property
    def of(self) -> Ints:
        """Shape (m,): the class of each cut."""
        return self._classes[1]

    @cached_property
    def cuts(self) -> StageCuts:
        """A cut of each class."""
        return StageCuts(self.whole.member[self.least], self.whole.complete)

    def nets(self, nets: Nets) -> Nets:
        """Return the nets without light pins; a net whose source is light keeps that."""
        owner = nets.pins.owners()
        stays = self.heavy[nets.pins.items] | (nets.pins.items == nets.source[owner])
        pins = rows_of(owner[stays], nets.pins.items[stays], len(nets.cost))
        of_node = rows_of(pins.items, pins.owners(), len(self.heavy))
        return nets._replace(pins=pins, of_node=of_node, read=nets.read[stays])

    def clear(self, nets: Nets, gap: int) -> Bools:
        """Return the nets whose transfers at heavy pins are as without light ones, shape (nets,).

        Their sources are heavy, and no light pin makes a device fetch the tensor sooner: none reads it in an
        earlier pass than a heavy one, or may be in another stage of the device of a heavy one, with at least
        `gap` stages between them.
        """
        below, above = self.whole.reach
        found, read = self.heavy[nets.source], nets.read
        for e in np.flatnonzero(found).tolist():
            places = np.arange(nets.pins.start[e], nets.pins.start[e + 1])
            pins = nets.pins.items[places]
            light, heavy = places[~self.heavy[pins]], places[self.heavy[pins] & (pins != nets.source[e])]
            if len(light) and len(heavy):
                one, other = nets.pins.items[light][:, None], nets.pins.items[heavy]
                between = np.maximum(above[one] - below[other], above[other] - below[one])
                found[e] = between.max() < gap and read[light].min() >= read[heavy].max()
        return found

    def joined(self, lists: ArcLists, waits: Bools) -> ArcLists:
        """Return the least times of stages between classes, with the transfers that these surely pay.

        Parameters
        ----------
        lists
            The stages between the cuts.
        waits
            Shape (classes, classes): whether a stage between two classes waits; from each class those that do
            not come first.
        """
        count, parts = len(self), list[ArcLists]()
        for start, end in zip(lists.start, lists.end, strict=True):
            places = slice(int(start[0]), int(end[-1]))
            pair = self.of[np.repeat(np.arange(len(self.whole)), end - start)] * count
            pair += self.of[lists.items[places]]
            least = np.full((3, count * count), np.inf, lists.surely.dtype)
            for one, times in zip(least, lists.surely[:, places], strict=True):
                np.minimum.at(one, pair, times)
            first, last = np.divmod(np.flatnonzero(np.isfinite(least[0])), count)
            order = np.lexsort((last, waits[first, last], first))
            first, last = first[order], last[order]
            bounds = np.searchsorted(first, np.arange(count + 1))
            times = np.take(least, first * count + last, axis=1)
            parts.append(ArcLists(bounds[None, :-1], bounds[None, 1:], last.astype(np.int32), times, times))
        return ArcLists.joined(parts)
