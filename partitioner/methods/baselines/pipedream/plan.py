"""PipeDream's planner as a function of layers and levels of machines.

The dynamic program of one level; T(j, m) is the best time up to state j on m machines.

The hierarchy of levels: the best time on one level is the compute time on the next.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.base.errors import InfeasibleError, OptionError, shown
from partitioner.methods.baselines.pipedream.layers import (
    Layers,
    MachineLevel,
    PipeDreamPlan,
    Stage,
    checked_levels,
)
from partitioner.methods.baselines.pipedream.states import (
    LayerIdeals,
    Look,
    antichain_states,
    ideal_states,
    no_look,
    stage_time,
)
from partitioner.workload.graph import Bools, Floats, Ints


class Cuts(NamedTuple):
    """The states at which a pipeline may be cut; state 0 is the empty ideal, S the whole graph.

    Parameters
    ----------
    parameters, output
        Shape (S + 1,): bytes of the ideal's weights, and bytes that cross the cut.
    before
        Shape (S + 1, S + 1): whether the first state may be a cut before the second one.
    """

    parameters: Floats
    output: Floats
    before: Bools


class Rules(NamedTuple):
    """A level of machines, and the rules for pipelines on it.

    Parameters
    ----------
    machines, bandwidth
        The number of machines, and the bandwidth between them in bytes per unit of time.
    first_share, later_share
        Divisors of the synchronisation time, of the first stage and of later ones.
    straight
        Whether no stage is replicated.
    fewer
        Whether machines may stay idle.
    """

    machines: int
    bandwidth: float
    first_share: float
    later_share: float
    straight: bool
    fewer: bool


def best_row(time: Floats, start: int, cuts: Cuts, rules: Rules) -> tuple[Floats, Ints, Ints, Ints]:
    """Return the best pipelines of everything between state `start` and each later one.

    A stage of r machines between the cuts k and j takes the largest of the times of its compute with
    synchronisation, its input and its output, each moved forward and its gradient back over the links of all
    its replicas. The first stage pays no transfer, and the last one has no output. As in the released
    program, idle machines are not considered for a pipeline that ends at the first state.

    Parameters
    ----------
    time
        Shape (S + 1, S + 1): time of the layers between two states on one machine, infinity where
        they cannot be a stage.
    start
        The state after which the pipelines begin.
    cuts, rules
        The states and the level.

    Returns
    -------
    value, split, left, replicas
        Shape (S + 1, machines + 1): the smallest time for exactly (with `fewer`, at most) that many machines;
        the state after which the last stage begins, how many machines are left for the stages before it,
        and how many it has.
    """
    shape = (len(cuts.parameters), rules.machines + 1)
    value, split = np.full(shape, np.inf), np.full(shape, -1, np.int64)
    left, replicas = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    _fill_row(time, start, cuts, rules, value, split, left, replicas)
    return value, split, left, replicas


@njit(cache=True, nogil=True)
def _fill_row(time, start, cuts, rules, value, split, left, replicas):  # type: ignore[no-untyped-def]
    parameters, output, before = cuts
    machines, bandwidth, first_share, later_share, straight, fewer = rules
    states = len(parameters)
    most = 1 if straight else machines
    for j in range(start + 1, states):
        weights = parameters[j] - parameters[start]
        for r in range(1, most + 1):
            cost = stage_time(time[start, j], weights, r, bandwidth, first_share)
            if cost < value[j, r]:
                value[j, r], split[j, r], replicas[j, r] = cost, start, r
        for k in range(start + 1, j):
            if not before[k, j]:
                continue
            weights = parameters[j] - parameters[k]
            for r in range(1, min(most, machines - 1) + 1):
                cost = stage_time(time[k, j], weights, r, bandwidth, later_share)
                cost = max(cost, 2.0 * output[k] / (bandwidth * r))
                if j < states - 1:
                    cost = max(cost, 2.0 * output[j] / (bandwidth * r))
                for m in range(r + 1, machines + 1):
                    total = max(cost, value[k, m - r])
                    if total < value[j, m]:
                        value[j, m], split[j, m], left[j, m], replicas[j, m] = total, k, m - r, r
        if fewer and j > start + 1:
            for m in range(2, machines + 1):
                if value[j, m - 1] < value[j, m]:
                    value[j, m], split[j, m] = value[j, m - 1], split[j, m - 1]
                    left[j, m], replicas[j, m] = left[j, m - 1], replicas[j, m - 1]


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
        The rules of each level of machines, the innermost first.
    look
        Called several times during the run; an exception that it raises ends the run.
    """

    def __init__(
        self, layers: Layers, states: LayerIdeals, levels: Sequence[Rules], look: Look = no_look
    ) -> None:
        look()
        self.cuts, self.rules = cuts_of(layers, states), levels
        self.times = [_segment_times(layers, states, self.cuts)]
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
    parameters = np.concatenate(([0.0], states.inside @ layers.parameters))
    before = np.zeros((len(parameters), len(parameters)), dtype=bool)
    before[0, 1:], before[1:, 1:] = True, states.before
    return Cuts(parameters, np.concatenate(([0.0], states.output)), before)


def rules_of(levels: Sequence[MachineLevel], straight: bool, fewer: bool) -> list[Rules]:
    """Return the rules of each level.

    As in the released program, the synchronisation of the first stage is divided by the size of the level
    below, and that of later stages is not divided.
    """
    below = (1, *(level.machines for level in levels))
    return [
        Rules(level.machines, float(level.bandwidth), float(size), 1.0, straight, fewer)
        for level, size in zip(levels, below, strict=False)
    ]


def _best_table(time: Floats, cuts: Cuts, rules: Rules, look: Look) -> Floats:
    """Return the best time between any two states on all machines of a level, shape (S + 1, S + 1)."""
    table = np.full(time.shape, np.inf)
    for start in range(len(time) - 1):
        look()
        table[start] = best_row(time, start, cuts, rules)[0][:, rules.machines]
    return table


def _segment_times(layers: Layers, states: LayerIdeals, cuts: Cuts) -> Floats:
    """Return the time of the layers between two states on one machine, shape (S + 1, S + 1).

    As in the released program, states of which neither contains the other make segments, too, even of
    negative time, which levels above the first may use.
    """
    total = np.concatenate(([0.0], states.inside @ layers.time))
    allowed = np.triu(np.ones_like(cuts.before), 1)
    return np.where(allowed, total[None, :] - total[:, None], np.inf)


STATES = {"antichains": antichain_states, "ideals": ideal_states}
MAX_STATES = 5000


def plan(
    layers: Layers,
    levels: Sequence[tuple[int, float]],
    *,
    states: str = "antichains",
    straight: bool = False,
    fewer_machines: bool = False,
    max_states: int = MAX_STATES,
    look: Look = no_look,
) -> PipeDreamPlan:
    """Return the pipeline that PipeDream's optimizer chooses, by the time of its slowest part.

    On several levels times are those of the released program: the synchronisation of a first stage is divided
    by the size of the groups below, that of later stages is not, and inside a group a segment may be between
    states of which neither contains the other, so that times of branching graphs may be too small and depend
    on the numbers of the states. Its option of memory is not offered: it counts no memory of the last stage.

    Parameters
    ----------
    layers
        The forward graph, without data loading.
    levels
        Machines and bandwidth of each level, the innermost first: ``[(4, 12e9), (2, 1e9)]`` are two
        groups of four machines. Bandwidth is in bytes per unit of time. A group is used as a whole.
    states
        ``"antichains"``: the cuts that the released planner reaches from the first source, with the bytes
        that it counts at a cut; ``"ideals"``: all cuts, with exactly the bytes that cross them.
    straight
        Whether no stage is replicated.
    fewer_machines
        Whether machines may stay idle; otherwise all are used, and a straight pipeline has as many stages.
    max_states
        The largest number of states.
    look
        Called several times during the search; an exception that it raises ends the search.

    Raises
    ------
    OptionError
        If an argument is out of its range.
    InfeasibleError
        If no pipeline obeys the restrictions.
    NoPlanFound
        If there are more than `max_states` states.

    Examples
    --------
    >>> chain = Layers([4.0, 1.0, 3.0], [8.0, 8.0, 8.0], [0.0, 0.0, 90.0], [(0, 1), (1, 2)])
    >>> found = plan(chain, [(3, 10.0)])
    >>> found.time, [(stage.layers, stage.machines) for stage in found.stages]
    (3.0, [((0, 1), 2), ((2,), 1)])
    """
    machines = checked_levels(levels)
    if states not in STATES:
        raise OptionError(f"states = {shown(states)}: must be one of {', '.join(STATES)}")
    if isinstance(max_states, bool) or not isinstance(max_states, int) or max_states < 1:
        raise OptionError(f"max_states = {shown(max_states)}: must be an integer of at least 1")
    found = STATES[states](layers, max_states, look)
    time, pieces = Hierarchy(layers, found, rules_of(machines, straight, fewer_machines), look).best()
    if math.isinf(time):
        raise InfeasibleError(_why_not(len(found.output), machines, straight))
    return PipeDreamPlan(
        time=time,
        stages=_stages(found, pieces),
        data_parallel_time=_data_parallel_time(layers, machines),
        states=len(found.output),
    )


def _why_not(states: int, levels: Sequence[MachineLevel], straight: bool) -> str:
    machines = " x ".join(str(level.machines) for level in levels)
    return (
        f"no pipeline over {states} states uses {machines} machines" + straight * " with unreplicated stages"
    )


def _stages(states: LayerIdeals, pieces: Sequence[Piece]) -> tuple[Stage, ...]:
    """Return the stages; a layer belongs to the first stage whose end state holds it.

    If each cut contains the one before, a stage is the difference of two ideals.
    """
    taken = np.zeros(states.inside.shape[1], dtype=bool)
    stages = []
    for piece in pieces:
        fresh = states.inside[piece.end - 1] & ~taken
        stages.append(Stage(tuple(np.flatnonzero(fresh).tolist()), piece.first, piece.replicas))
        taken |= fresh
    return tuple(stages)


def _data_parallel_time(layers: Layers, levels: Sequence[MachineLevel]) -> float:
    time, weights, below = float(layers.time.sum()), float(layers.parameters.sum()), 1
    for machines, bandwidth in levels:
        time = stage_time(time, weights, machines, bandwidth, below)
        below = machines
    return time
