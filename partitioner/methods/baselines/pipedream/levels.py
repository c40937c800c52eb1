"""The hierarchy of levels: the best time on one level is the compute time on the next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partitioner.methods.baselines.pipedream.flat import Cuts, Rules, best_row
from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.request import MachineLevel, Restrictions
from partitioner.methods.baselines.pipedream.states import LayerIdeals, Look, no_look
from partitioner.problem.arrays import Floats


class Piece(NamedTuple):
    """A stage between two cuts, with its first machine and replicas on each level, the innermost first."""

    start: int
    end: int
    first: tuple[int, ...] = ()
    replicas: tuple[int, ...] = ()

    def on(self, first: int, replicas: int) -> Piece:
        """Return the piece on `replicas` machines of the next level, from machine `first` on."""
        return self._replace(first=(*self.first, first), replicas=(*self.replicas, replicas))


class Hierarchy:
    """The tables of all levels, computed from the innermost one; the outermost only for the empty ideal.

    Parameters
    ----------
    layers, states
        The graph and its cuts.
    levels
        The levels of machines, the innermost first.
    restrictions
        The restrictions, which hold on each level.
    look
        Called several times during the run; an exception that it raises ends the run.
    """

    def __init__(
        self,
        layers: Layers,
        states: LayerIdeals,
        levels: Sequence[MachineLevel],
        restrictions: Restrictions,
        look: Look = no_look,
    ) -> None:
        look()
        self.cuts = cuts_of(layers, states)
        self.rules = rules_of(levels, restrictions)
        self.times = [_segment_times(layers, states, self.cuts, restrictions.consistent)]
        for rules in self.rules[:-1]:
            self.times.append(_best_table(self.times[-1], self.cuts, rules, look))

    def best(self) -> tuple[float, list[Piece]]:
        """Return the predicted time, infinity if there is no pipeline, and its stages in order."""
        end = len(self.cuts.output) - 1
        value = best_row(self.times[-1], 0, self.cuts, self.rules[-1])[0][end, -1]
        return float(value), self._pieces(len(self.rules) - 1, 0, end) if value < math.inf else []

    def _pieces(self, level: int, start: int, end: int) -> list[Piece]:
        """Return the innermost stages of the best pipeline between two states on all machines of a level."""
        rules = self.rules[level]
        _, split, left, replicas = best_row(self.times[level], start, self.cuts, rules)
        found: list[Piece] = []
        machines = rules.machines
        while end != start:
            cut, count = int(split[end, machines]), int(replicas[end, machines])
            machines = int(left[end, machines])
            inner = self._pieces(level - 1, cut, end) if level else [Piece(cut, end)]
            found = [piece.on(machines, count) for piece in inner] + found
            end = cut
        return found


def cuts_of(layers: Layers, states: LayerIdeals) -> Cuts:
    """Return the cuts of all states, with the empty ideal as state 0."""
    parameters = states.inside @ layers.parameters
    held = states.inside @ (layers.activation + layers.parameters)
    before = np.zeros((len(parameters) + 1, len(parameters) + 1), dtype=bool)
    before[0, 1:], before[1:, 1:] = True, states.before
    parameters, held, output = (np.concatenate(([0.0], x)) for x in (parameters, held, states.output))
    return Cuts(parameters, held, output, before)


def rules_of(levels: Sequence[MachineLevel], restrictions: Restrictions) -> list[Rules]:
    """Return the rules of each level.

    In the released program, the synchronisation of the first stage is divided by the size of the level below,
    and that of later stages is not divided. If `consistent`, both are divided by all machines of a group.
    """
    ratio = restrictions.activation_compression_ratio
    found: list[Rules] = []
    below = group = 1
    for machines, bandwidth in levels:
        first, later = (group, group) if restrictions.consistent else (below, 1)
        found.append(
            Rules(
                machines=machines,
                bandwidth=float(bandwidth),
                first_share=float(first),
                later_share=float(later),
                straight=restrictions.straight,
                fewer=restrictions.fewer_machines,
                memory=math.inf if restrictions.memory is None else float(restrictions.memory),
                charged=ratio is not None,
                ratio=float(ratio or 1.0),
            )
        )
        below, group = machines, group * machines
    return found


def _best_table(time: Floats, cuts: Cuts, rules: Rules, look: Look) -> Floats:
    """Return the best time between any two states on all machines of a level, shape (S + 1, S + 1)."""
    table = np.full(time.shape, np.inf)
    for start in range(len(time) - 1):
        look()
        table[start] = best_row(time, start, cuts, rules)[0][:, rules.machines]
    return table


def _segment_times(layers: Layers, states: LayerIdeals, cuts: Cuts, consistent: bool) -> Floats:
    """Return the time of the layers between two states on one machine, shape (S + 1, S + 1).

    In the released program, states of which neither contains the other make segments, too, even of negative
    time, which levels above the first may use. If `consistent`, they make none.
    """
    total = np.concatenate(([0.0], states.inside @ layers.time))
    allowed = cuts.before if consistent else np.triu(np.ones_like(cuts.before), 1)
    return np.where(allowed, total[None, :] - total[:, None], np.inf)
