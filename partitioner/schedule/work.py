"""The passes of a sample of a placement, with the evaluator's times and memory."""

from __future__ import annotations

import numpy as np

from partitioner.evaluation.costs import tensors
from partitioner.evaluation.links import StageLinks, batch_exchange_times, exchange_times, links_of
from partitioner.evaluation.notes import notes_on_replicas
from partitioner.evaluation.placed import Placed
from partitioner.evaluation.replicas import Replicas, shared_out
from partitioner.schedule.passes import Passes
from partitioner.schedule.pieces import Pieces
from partitioner.schedule.table import BACKWARD, FORWARD
from partitioner.workload.devices import SHARES
from partitioner.workload.graph import Floats, Graph, Ints


def passes_of(placed: Placed, copies: Replicas, pieces: Pieces, links: str = "host") -> Passes:
    """Return one pass for each piece.

    A device fetches a tensor once, in the first of its pieces that uses the tensor; its later pieces wait for
    that one. The piece that produces a tensor sends it once, at the speed of its slowest link. With
    ``"direct"`` links there are no transfers out: only the receiver is busy.
    """
    device, count = pieces.device, len(pieces.device)
    wires = links_of(placed, copies)
    into, out, fetched = _transfers(placed, wires, pieces)
    stage, paired = _numbers(pieces)
    release = _releases(pieces, stage, paired)
    holds = _holder(pieces, stage, paired)[pieces.home]
    parameters, gradients, optimizer, activations, _ = placed.graph.parts
    teams = {lead: copies.teams(lead) for lead in np.unique(device).tolist()}
    pairs = np.concatenate((pieces.home[placed.graph.edges], fetched, _kept(release)))
    start, before = _rows(pairs, count)
    return Passes(
        names=placed.names,
        replicas={lead: tuple(team[0] for team in each) for lead, each in teams.items()},
        device=device,
        stage=stage,
        direction=np.where(pieces.backward, BACKWARD, FORWARD),
        into=into if links == "host" else into / SHARES[placed.devices.route],
        compute=_compute(placed, pieces),
        out=out if links == "host" else np.zeros(count),
        sync=_sync(device, copies, exchange_times(placed, copies, wires)),
        closing=batch_exchange_times(placed, copies, wires),
        activations=_sums(holds, activations, count),
        release=release,
        parameters=_sums(holds, parameters, count),
        workspace=_largest(placed.graph, pieces),
        fixed=_sums(placed.device, placed.graph.size + gradients + optimizer, len(placed.names))
        - shared_out(placed, copies),
        before_start=start,
        before=before,
        paired=paired,
        together={team[0]: team for each in teams.values() for team in each if len(team) > 1},
        lag=1 if placed.devices.communication == "sequential" else 3,
        notes=notes_on_replicas(placed, copies),
    )


def _sums(where: Ints, amount: Floats, count: int) -> Floats:
    return np.bincount(where, amount, count).astype(np.float64)


def _compute(placed: Placed, pieces: Pieces) -> Floats:
    graph = placed.graph
    time = np.where(placed.row < 0, 0.0, graph.time[placed.row, np.arange(len(graph))])
    return np.asarray(np.bincount(pieces.home, time, len(pieces.device)) * placed.time_factor[pieces.device])


def _transfers(placed: Placed, links: StageLinks, pieces: Pieces) -> tuple[Floats, Floats, Ints]:
    """Return the times of transfers in and out of every piece, and pairs of pieces.

    The second piece of a pair uses a tensor that the first fetches; shape (pairs, 2). Alternatives add their
    times to the piece that uses the tensor of an edge, and to the one that makes it.
    """
    graph, device, home, count = placed.graph, placed.device, pieces.home, len(pieces.device)
    tensor, cost = tensors(graph)
    maker, user = graph.edges[:, 0], graph.edges[:, 1]
    cut = device[maker] != device[user]
    tensor, maker, user = tensor[cut], maker[cut], user[cut]
    slowdown = links.slow(device[maker], device[user])
    slowed_cost, (reading, sending) = cost[tensor] * slowdown, placed.surcharge[:, cut] * slowdown
    sent, which = np.unique(tensor, return_inverse=True)
    slowest, source = np.zeros(len(sent)), np.zeros(len(sent), dtype=np.int64)
    np.maximum.at(slowest, which, slowed_cost)
    source[which] = maker
    out = np.bincount(home[source], slowest, count) + np.bincount(home[maker], sending, count)
    arrival, which = np.unique(tensor * len(placed.names) + device[user], return_inverse=True)
    first = np.full(len(arrival), count, dtype=np.int64)
    np.minimum.at(first, which, home[user])
    fetch_cost = np.zeros(len(arrival))
    fetch_cost[which] = slowed_cost
    into = np.bincount(first, fetch_cost, count) + np.bincount(home[user], reading, count)
    factor = placed.transfer_factor[pieces.device]
    return into * factor, out * factor, np.stack((first[which], home[user]), axis=1)


def _numbers(pieces: Pieces) -> tuple[Ints, bool]:
    """Return the stage of every piece, and whether every stage has all its passes on one device."""
    forward = int((~pieces.backward).sum())
    backward = len(pieces.device) - forward
    stage = np.concatenate((np.arange(forward), np.arange(backward)[::-1]))
    mirrored = backward == forward and bool((pieces.device[:forward] == pieces.device[forward:][::-1]).all())
    return stage, mirrored or backward == 0


def _holder(pieces: Pieces, stage: Ints, paired: bool) -> Ints:
    """Return for each piece the piece at whose beginning the memory of its nodes is allocated."""
    return np.where(pieces.backward & paired, stage, np.arange(len(stage)))


def _releases(pieces: Pieces, stage: Ints, paired: bool) -> Ints:
    """Return for each piece the piece at whose end its memory is released.

    This is the last piece of its stage if stages have all their passes on one device, else the last piece of
    its device.
    """
    count = len(stage)
    if not pieces.backward.any():
        return np.arange(count)
    if paired:
        return np.asarray(count - 1 - stage)
    last = np.zeros(int(pieces.device.max()) + 1, dtype=np.int64)
    np.maximum.at(last, pieces.device, np.arange(count))
    final = last[pieces.device]
    return np.where(pieces.backward[final], final, np.arange(count))


def _kept(release: Ints) -> Ints:
    return np.stack((np.arange(len(release)), release), axis=1)


def _sync(device: Ints, copies: Replicas, average: Floats) -> Floats:
    """Return the time of the exchange of weights for a replica's sample, at its device's last pass."""
    last = {lead: i for i, lead in enumerate(device.tolist())}
    found = np.zeros(len(device))
    for lead, i in last.items():
        found[i] = average[lead] * copies.count[lead]
    return found


def _largest(graph: Graph, pieces: Pieces) -> Floats:
    found = np.zeros(len(pieces.device))
    np.maximum.at(found, pieces.home, graph.parts[4])
    return found


def _rows(pairs: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the pieces that come before each piece, as rows."""
    pairs = np.unique(pairs[pairs[:, 0] != pairs[:, 1]], axis=0)
    pairs = pairs[np.argsort(pairs[:, 1], kind="stable")]
    start = np.concatenate(([0], np.cumsum(np.bincount(pairs[:, 1], minlength=count))))
    return start, np.ascontiguousarray(pairs[:, 0])
