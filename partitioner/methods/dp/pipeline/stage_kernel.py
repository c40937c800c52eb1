"""Sums over a growing stage and its load with replicas (paper, Appendix H.2), compiled."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit

SIZE, PARAMETERS, ACTIVATIONS, WORKSPACE, WEIGHTS, INTO, LEAVING, STAYING = range(8)
NODES, PINNED, LAYERS, NEAR = range(4)


@njit(cache=True, inline="always")
def spread(work, weights, copies, bandwidth, added):  # type: ignore[no-untyped-def]
    """Return the mean time for a sample of a stage on `copies` devices, which exchange its weights."""
    exchange = (copies - 1) * weights / (copies * bandwidth)
    return work / copies + exchange if added else max(work / copies, exchange)


@njit(cache=True, inline="always")
def can_spread(work, weights, most, bandwidth, added, threshold):  # type: ignore[no-untyped-def]
    """Whether a stage of at least this work and weights can have a load up to the threshold.

    It may have up to `most` devices. If the exchange is added, the load is monotone in the number of devices;
    else the least number that the work allows is the best one.
    """
    if work <= threshold:
        return most > 0
    if most < 2 or work == np.inf:
        return False
    if added:
        return spread(work, weights, most, bandwidth, added) <= threshold
    fewest = int(min(np.ceil(work / threshold), most + 1.0)) if threshold > 0 else most
    for copies in range(max(1, fewest - 1), min(most, fewest + 1) + 1):
        if spread(work, weights, copies, bandwidth, added) <= threshold:
            return True
    return False


@njit(cache=True, inline="always")
def takes(sums, in_flight, versions, memory, size, parameters, activations, workspace):  # type: ignore[no-untyped-def]
    """Whether a stage with one more supernode fits in memory, with this many samples and versions."""
    need = sums[SIZE] + size + versions * (sums[PARAMETERS] + parameters)
    need += in_flight * (sums[ACTIVATIONS] + activations)
    return need + max(sums[WORKSPACE], workspace) <= memory


@njit(cache=True, inline="always")
def add_sums(sizes, parameters, activations, workspaces, weights, v, sums, depth):  # type: ignore[no-untyped-def]
    """Add the memory and the weights of `v` to those of the stage, and write them at `depth` + 1."""
    sums[depth + 1, SIZE] = sums[depth, SIZE] + sizes[v]
    sums[depth + 1, PARAMETERS] = sums[depth, PARAMETERS] + parameters[v]
    sums[depth + 1, ACTIVATIONS] = sums[depth, ACTIVATIONS] + activations[v]
    sums[depth + 1, WORKSPACE] = max(sums[depth, WORKSPACE], workspaces[v])
    sums[depth + 1, WEIGHTS] = sums[depth, WEIGHTS] + weights[v]


@njit(cache=True, inline="always")
def add_numbers(nodes, pinned, touching, v, number, depth):  # type: ignore[no-untyped-def]
    """Add the nodes and pins to devices of `v`, and whether it has neighbours behind the stage."""
    number[depth + 1, NODES] = number[depth, NODES] + nodes[v]
    number[depth + 1, PINNED] = number[depth, PINNED] + pinned[v]
    number[depth + 1, NEAR] = number[depth, NEAR] + (1 if touching[v] > 0 else 0)


@njit(cache=True, inline="always")
def add_layers(layer_start, layer_of, layers, v, by_layers, number, depth):  # type: ignore[no-untyped-def]
    """Add `v` to the count of distinct layers of the stage."""
    found = number[depth, LAYERS]
    if by_layers:
        for i in range(layer_start[v], layer_start[v + 1]):
            layers[layer_of[i]] += 1
            found += layers[layer_of[i]] == 1
    number[depth + 1, LAYERS] = found


@njit(cache=True, inline="always")
def remove_layers(layer_start, layer_of, layers, v, by_layers):  # type: ignore[no-untyped-def]
    """Remove the layers of `v` from those of the stage."""
    if by_layers:
        for i in range(layer_start[v], layer_start[v + 1]):
            layers[layer_of[i]] -= 1


@njit(cache=True, inline="always")
def add_nets(net_start, net_of, pins, enter, leave, source, before, inside, v, sums, depth):  # type: ignore[no-untyped-def]
    """Add `v` to the nets of the stage, and write the transfers of the stage at `depth` + 1."""
    into, out, stay = sums[depth, INTO], sums[depth, LEAVING], sums[depth, STAYING]
    for i in range(net_start[v], net_start[v + 1]):
        net = net_of[i]
        inside[net] += 1
        if inside[net] == 1:
            if source[net] == v:
                out += leave[net]
            else:
                into += enter[net]
            if before[net] > 0:
                stay += min(enter[net], leave[net])
        elif source[net] == v:
            into -= enter[net]
            out += leave[net]
        if inside[net] == pins[net]:
            out -= leave[net]
    sums[depth + 1, INTO], sums[depth + 1, LEAVING], sums[depth + 1, STAYING] = into, out, stay


@njit(cache=True, inline="always")
def remove_nets(net_start, net_of, inside, v):  # type: ignore[no-untyped-def]
    """Remove `v` from the nets of the stage."""
    for i in range(net_start[v], net_start[v + 1]):
        inside[net_of[i]] -= 1
