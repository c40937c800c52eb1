"""PipeDream's planner as a function of layers and levels of machines."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from partitioner.base.errors import InfeasibleError, OptionError, shown
from partitioner.methods.baselines.pipedream.layers import Layers
from partitioner.methods.baselines.pipedream.levels import Hierarchy, Piece
from partitioner.methods.baselines.pipedream.model import stage_time
from partitioner.methods.baselines.pipedream.request import MachineLevel, Restrictions, check, checked_levels
from partitioner.methods.baselines.pipedream.result import PipeDreamPlan, Stage
from partitioner.methods.baselines.pipedream.states import (
    LayerIdeals,
    Look,
    antichain_states,
    ideal_states,
    no_look,
)

STATES = {"antichains": antichain_states, "ideals": ideal_states}
MAX_STATES = 5000


def plan(
    layers: Layers,
    levels: Sequence[tuple[int, float]],
    *,
    states: str = "antichains",
    straight: bool = False,
    fewer_machines: bool = False,
    activation_compression_ratio: float | None = None,
    memory: float | None = None,
    consistent: bool = False,
    max_states: int = MAX_STATES,
    look: Look = no_look,
) -> PipeDreamPlan:
    """Return the pipeline that PipeDream's optimizer chooses, by the time of its slowest part.

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
    activation_compression_ratio
        The number by which transfers between stages are divided; None if they do not count at all.
    memory
        Bytes of a machine; None without a limit. A stage with v machines behind it, on r replicas, needs
        ceil(v / r) times its weights and activations.
    consistent
        False computes times on several levels as the released program does: the synchronisation of a first
        stage is divided by the size of the groups below, that of later stages is not, and inside a group
        a segment may be between states of which neither contains the other, so that times of branching
        graphs may be too small and depend on the numbers of the states. True divides both by all machines
        of a group and leaves such segments out.
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
    restrictions = Restrictions(straight, fewer_machines, activation_compression_ratio, memory, consistent)
    check(restrictions)
    machines = checked_levels(levels)
    if states not in STATES:
        raise OptionError(f"states = {shown(states)}: must be one of {', '.join(STATES)}")
    if isinstance(max_states, bool) or not isinstance(max_states, int) or max_states < 1:
        raise OptionError(f"max_states = {shown(max_states)}: must be an integer of at least 1")
    found = STATES[states](layers, max_states, look)
    hierarchy = Hierarchy(layers, found, machines, restrictions, look)
    time, pieces = hierarchy.best()
    if math.isinf(time):
        raise InfeasibleError(_why_not(len(found.output), machines, restrictions))
    return PipeDreamPlan(
        time=time,
        stages=_stages(found, pieces),
        single_machine_time=float(layers.time.sum()),
        data_parallel_time=_data_parallel_time(layers, machines),
        states=len(found.output),
    )


def _why_not(states: int, levels: Sequence[MachineLevel], restrictions: Restrictions) -> str:
    machines = " x ".join(str(level.machines) for level in levels)
    text = f"no pipeline over {states} states uses {machines} machines"
    asked = ["unreplicated stages"] * restrictions.straight
    if restrictions.memory is not None:
        asked.append(f"memory = {restrictions.memory:g}")
    return " with ".join((text, " and ".join(asked))) if asked else text


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
        time = stage_time.py_func(time, weights, machines, bandwidth, below)
        below = machines
    return time
