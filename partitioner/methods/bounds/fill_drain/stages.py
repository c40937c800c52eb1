"""The compiled step that adds a stage before those of a table, as far as its paths allow."""

from __future__ import annotations

import numpy as np

from partitioner.base.compiled import njit
from partitioner.methods.bounds.fill_drain.labels import add_onward, add_returning, keep
from partitioner.methods.bounds.fill_drain.paths import STREAM, longest_path
from partitioner.methods.communication_kernel import SEQUENTIAL
from partitioner.methods.dp.pipeline.stage_kernel import WEIGHTS, takes


@njit(cache=True)
def extend(  # type: ignore[no-untyped-def]
    costs, memory_model, states, spec, table, outside, paths, worthy, count, start, ideal, k,
    parts, load, sum_of, counted, apart, less,
):  # fmt: skip
    """Add the stage between two ideals to the states of the first one, as far as the limit allows.

    `parts` are the processing times of both passes, the times of their transfers, and that of all transfers
    in; `apart` the times that a sample takes at least before and after a stage that the spine does not count;
    and `less` by how much less than the most the load of an earlier stage is that it does count.
    Returned is how often the stage was added to a slot.
    """
    in_row = costs.communication == SEQUENTIAL
    forward, backward, transfers = parts[0], parts[1], parts[2] + parts[3]
    whole = forward + backward + transfers
    alone = whole if spec.returns else backward + parts[3]
    turn = alone if not spec.turns else whole - parts[4] if in_row else forward + backward
    if in_row:  # a path that stays in a row has all transfers of its passes
        forward, backward, transfers = forward + parts[2], backward + parts[3], 0.0
    added = 0
    for i in range(count):
        s = worthy[i]
        for r in range(1, states.left[s, k] + 1):
            if load > spec.most * r:
                continue
            t, own, ahead = s + r * states.stride[k], -(-spec.samples // r), -(-states.behind[s] // r)
            if spec.remaining[ideal] > spec.capacity[t]:
                break
            if spec.remaining_on[ideal] > spec.capacity_on[t] - less * spec.price[t]:
                break
            before = outside[0, ideal, spec.unused[t]]
            if before == np.inf:
                continue
            held, versions = (
                memory_model.in_flight[states.behind[s], r],
                memory_model.versions[states.behind[s], r],
            )
            if not takes(sum_of, held, versions, memory_model.memory[k], 0.0, 0.0, 0.0, 0.0):
                continue
            exchange = (r - 1) * sum_of[WEIGHTS] / costs.bandwidth[k] if costs.added else 0.0
            for slot in range(table.used[start, s]):
                behind = table.value[start, s, slot]
                total, bound = behind, apart[0] + own * load + (own - 1) * exchange
                if spec.way == STREAM:
                    bound += apart[1]
                paths[:] = table.label[start, s, slot]
                if counted:
                    total += alone if behind > 0 else turn
                    bound = longest_path(
                        spec.way, own, ahead, before, behind, load, forward + backward,
                        max(forward, backward), exchange,
                    )  # fmt: skip
                    if bound <= spec.limit and len(paths) > 0:
                        add_labels(
                            spec, states.behind[s], table.label[start, s, slot], forward, backward, transfers,
                            load, paths,
                        )  # fmt: skip
                        bound = max(bound, before + paths[spec.whole])
                        if not spec.returns:
                            late = outside[1, ideal, spec.unused[t]]
                            bound = max(bound, late + paths[len(spec.rows.forward)])
                added += 1
                if bound <= spec.limit:
                    keep(
                        table, ideal, t, total, paths, spec.whole, spec.close, start, slot, k, r
                    )  # fmt: skip
    return added


@njit(cache=True)
def add_labels(spec, devices, behind, forward, backward, transfers, load, found):  # type: ignore[no-untyped-def]
    """Write to `found` the labels of the stages behind, of labels `behind`, and of a stage before them."""
    row = spec.rows.number[devices]
    forwards, backwards = spec.rows.forwards[row], spec.rows.backwards[row]
    if spec.returns:
        shape = len(spec.rows.forward), len(spec.rows.backward)
        add_returning(
            forwards, backwards, behind.reshape(shape), forward, backward, transfers, found.reshape(shape)
        )
    else:
        add_onward(forwards, backwards, behind, forward, backward, found)
    found[spec.whole] = max(found[spec.whole], spec.samples * load)
