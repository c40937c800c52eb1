"""The compiled fill of a table of chains with a load in each of two passes.

``value[I, s]`` is the smallest largest load, in one pass or the sum of both, of stages that hold ideal I on
the devices of state s, among those in which no load in the other pass and no sum of both exceeds a limit:

    value[J, s + 1 of k] = min over I of max(value[I, s], load of the stage J - I on kind k)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.communication_kernel import growing_load
from partitioner.methods.dp._fill_core import UsefulStates, list_states
from partitioner.methods.dp._stages_core import (
    LAYERS,
    NEAR,
    NODES,
    PINNED,
    add_numbers,
    remove_layers,
)
from partitioner.methods.dp._transfers_core import (
    INTO,
    LEAVING,
    STAYING,
    PassNets,
    add_pass_nets,
    new_nets,
    remove_pass_nets,
)
from partitioner.methods.dp._walk_core import walk_of
from partitioner.methods.dp.lattice import Ints32, mark, relocate
from partitioner.methods.dp.stages import DeviceStates, PipelineTable, StageCosts, StageLimits
from partitioner.problem.arrays import Floats, Ints

SUM = 2  # the number of the sum of both loads, after those of the passes
COUNT, FRONTIER = range(2)  # places in `PassTally.at`


class PassTerms(NamedTuple):
    """All on which the loads, the memory and the limits of a stage depend.

    Parameters
    ----------
    costs, limits
        Its costs by pass, and the limits on it.
    size, memory
        Shapes (n,) and (K,): memory that supernodes need, and that devices have.
    """

    costs: StageCosts
    limits: StageLimits
    size: Floats
    memory: Floats


class PassSearchSpec(NamedTuple):
    """The chains that the sweep looks for.

    Parameters
    ----------
    least, limits
        The number of the load that is minimised, and shape (3,): the largest loads allowed in the forward
        pass, in the backward pass, and of both together.
    floor
        Largest loads up to this one count as equal.
    capacity, remaining, above
        Shapes (S,), (I,) and (n,): as in :class:`partitioner.methods.dp._chain_core.ChainSearchSpec`, for the
        load that needs the largest part of the capacity of all devices.
    growth, easiest
        Shapes (3, K, n) and (K, I): by how much a supernode may raise the loads of a stage that takes it from
        later stages, and the supernode of least growth that can follow an ideal, or -1.
    """

    least: int
    limits: Floats
    floor: float
    capacity: Floats
    remaining: Floats
    above: Floats
    growth: Floats
    easiest: Ints32


class PassTally(NamedTuple):
    """The current stage of a walk, and the table that it is written to; at depth d it has d supernodes.

    Parameters
    ----------
    terms, states, spec, table
        The costs and limits of stages, the devices by state, the chains that are looked for, and the table.
    nets
        Its tensors.
    compute, size, number
        Shapes (n + 2, 2, K), (n + 2,) and (n + 2, 4): by depth its times, memory, and numbers for the limits.
    load
        Shape (3, K): its loads in both passes, and their sum.
    layers, touching
        How often each layer is in the stage; how many neighbours of a supernode are in the ideal.
    useful, nothing
        The states that reach the ideal at which it begins; and shape (S, K): no samples in flight.
    at
        Shape (2,): how many states are worthy, and how many supernodes outside the ideal share an edge with
        it.
    """

    terms: PassTerms
    states: DeviceStates
    spec: PassSearchSpec
    table: PipelineTable
    nets: PassNets
    compute: Floats
    size: Floats
    number: Ints
    load: Floats
    layers: Ints
    touching: Ints
    useful: UsefulStates
    nothing: Floats
    at: Ints


def _enter(tally, start, ideal, depth, v):  # type: ignore[no-untyped-def]
    terms, limits, spec, load = tally.terms, tally.terms.limits, tally.spec, tally.load
    costs, moved = terms.costs, tally.nets.moved
    compute, size, number = tally.compute, tally.size, tally.number
    add_pass_nets(costs, tally.nets, v, depth)
    size[depth + 1] = size[depth] + terms.size[v]
    add_numbers(limits, tally.touching, tally.layers, v, number, depth)
    kept = (
        number[depth + 1, NODES] <= limits.most_nodes
        and number[depth + 1, LAYERS] <= limits.most_layers
        and number[depth + 1, PINNED] <= 1
    )
    wanted = False
    for k in range(len(terms.memory)):
        within = kept and tally.useful.widest[k] > 0 and size[depth + 1] <= terms.memory[k]
        least_total = 0.0
        for w in range(2):
            compute[depth + 1, w, k] = compute[depth, w, k] + costs.work[w, k, v]
            load[w, k], bound = growing_load(
                compute[depth + 1, w, k], moved[depth + 1, INTO + w], moved[depth + 1, LEAVING + w],
                moved[depth + 1, STAYING + w], costs.transfer_factor[k], costs.communication,
            )  # fmt: skip
            within = within and bound <= spec.limits[w]
            least_total += bound
        load[SUM, k] = load[0, k] + load[1, k]
        within = within and least_total <= spec.limits[SUM]
        wanted = wanted or within
        if not within:
            load[spec.least, k] = np.inf
    if not wanted:
        remove_pass_nets(costs, tally.nets, v)
        remove_layers(limits.layer_start, limits.layer, tally.layers, v, limits.by_layers)
    return wanted


def _leave(tally, v):  # type: ignore[no-untyped-def]
    limits = tally.terms.limits
    remove_pass_nets(tally.terms.costs, tally.nets, v)
    remove_layers(limits.layer_start, limits.layer, tally.layers, v, limits.by_layers)


def _reach(tally, start, ideal, depth, target):  # type: ignore[no-untyped-def]
    limits, number = tally.terms.limits, tally.number
    if (
        tally.spec.remaining[ideal] <= target
        and number[depth, NEAR] == tally.at[FRONTIER]
        and number[depth, NODES] >= limits.fewest_nodes
        and number[depth, LAYERS] >= limits.fewest_layers
    ):
        extend(tally, start, ideal, depth)
    return 0


def _lost(tally, v):  # type: ignore[no-untyped-def]
    if tally.terms.limits.by_neighbours and tally.touching[v] > 0:
        return np.inf
    return tally.spec.above[v]


@njit(cache=True, inner=True, forceinline=True, _nrt=False)
def extend(tally, start, end, depth):  # type: ignore[no-untyped-def]
    """Write the stage from ideal `start` to ideal `end` to the table for the states that allow it.

    A stage is left out if it can take one more supernode without a larger load of any later stage, without a
    load above the `least` of its chain, and within all limits.
    """
    spec, states, table, load, limits = tally.spec, tally.states, tally.table, tally.load, tally.spec.limits
    sizes, memory, number = tally.terms.size, tally.terms.memory, spec.least
    for k in range(len(memory)):
        if load[0, k] > limits[0] or load[1, k] > limits[1] or load[SUM, k] > limits[SUM]:
            continue
        mine, easy = load[number, k], spec.easiest[k, end]
        room = np.inf
        if states.dominance and easy >= 0 and tally.size[depth] + sizes[easy] <= memory[k]:
            room = mine + spec.growth[number, k, easy]
            for w in range(3):
                if w != number and load[w, k] + spec.growth[w, k, easy] > limits[w]:
                    room = np.inf
        for i in range(tally.at[COUNT]):
            before, least = tally.useful.worthy[i], tally.useful.least[i]
            state = before + states.stride[k]
            if states.left[before, k] > 0 and spec.remaining[end] <= spec.capacity[state] and room > least:
                largest = max(least, mine)
                if largest < table.value[end, state]:
                    table.value[end, state] = largest
                    table.origin[end, state] = start
                    table.kind[end, state] = k
                    table.copies[end, state] = 1


_walk = walk_of(_enter, _leave, _reach, _lost)


def new_tally(
    terms: PassTerms, states: DeviceStates, spec: PassSearchSpec, table: PipelineTable
) -> PassTally:
    """Return an empty stage, and room for the states that reach an ideal."""
    count, kinds = states.left.shape
    nodes, layer_of = len(terms.size), terms.limits.layer
    useful = UsefulStates(
        np.empty(count), np.empty(count, np.int64), np.empty(count), np.empty(kinds, np.int64),
        np.empty((kinds, 2)),
    )  # fmt: skip
    return PassTally(
        terms, states, spec, table, new_nets(nodes, len(terms.costs.pins)),
        np.zeros((nodes + 2, 2, kinds)), np.zeros(nodes + 2), np.zeros((nodes + 2, 4), np.int64),
        np.empty((3, kinds)), np.zeros(layer_of.max(initial=-1) + 1, np.int64), np.zeros(nodes, np.int64),
        useful, np.zeros((count, kinds)), np.zeros(2, np.int64),
    )  # fmt: skip


@njit(cache=True, nogil=True, _nrt=False)
def sweep(lattice, tally, path, covered, first, budget):  # type: ignore[no-untyped-def]
    """Add one stage to those that hold ideals `first`, `first` + 1, ...

    Parameters
    ----------
    lattice, tally, path
        See :mod:`partitioner.methods.dp.lattice`, :func:`new_tally` and
        :mod:`partitioner.methods.dp._walk_core`; the table of the tally is written.
    covered
        Shape (n,): False; marks the current ideal while its frontier is counted.
    first
        The ideal to start with.
    budget
        Return after the ideal at which this many steps have been walked.

    Returns
    -------
    tuple of int
        The next ideal to start with (the number of ideals less one when done), and the steps walked.
    """
    costs, limits, spec, nothing = tally.terms.costs, tally.terms.limits, tally.spec, tally.nothing
    parent, added, ideals, nodes = lattice.parent, lattice.added, len(lattice.parent), len(covered)
    tally.nets.before[:] = 0
    tally.touching[:] = 0
    steps, place = 0, 0
    for start in range(first, ideals - 1):
        if steps > budget:
            return start, steps
        count, target = list_states(
            tally.table.value[start], spec.floor, spec.limits[spec.least], tally.states, spec.capacity,
            (nothing, nothing), tally.useful,
        )  # fmt: skip
        if count == 0:
            continue
        relocate(parent, added, costs.net_start, costs.net, tally.nets.before, place, start)
        tally.at[COUNT], tally.at[FRONTIER] = count, 0
        if limits.by_neighbours:
            relocate(parent, added, limits.adjacent_start, limits.adjacent, tally.touching, place, start)
            mark(start, True, parent, added, covered)
            for v in range(nodes):
                tally.at[FRONTIER] += tally.touching[v] > 0 and not covered[v]
            mark(start, False, parent, added, covered)
        place = start
        steps += _walk(lattice, path, start, target, tally)
    return ideals - 1, steps
