"""The orders of passes are those that torch's own classes make, and what is in flight is counted in them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import OptionError
from partitioner.workload.directions import DIRECTIONS, FORWARD
from partitioner.workload.in_flight import stash
from partitioner.workload.virtual_stages.in_flight import samples_by_chunk
from partitioner.workload.virtual_stages.schedules import ALONE, VIRTUAL

CLASSES = {
    "interleaved_1f1b": "ScheduleInterleaved1F1B",
    "zb_h1": "ScheduleInterleavedZeroBubble",
    "zbv": "ScheduleZBVZeroBubble",
    "dualpipev": "ScheduleDualPipeV",
}
CHUNKS = [
    *(("interleaved_1f1b", chunks) for chunks in (2, 3)),
    *(("zb_h1", chunks) for chunks in (1, 2, 3)),
    ("zbv", 2),
    ("dualpipev", 2),
]


def torch_rows(name: str, devices: int, chunks: int, microbatches: int) -> list[list[str]]:
    """The passes of each rank that torch's class makes; a whole backward pass of DualPipeV in its halves."""
    schedules = pytest.importorskip("torch.distributed.pipelining.schedules")
    made = object.__new__(getattr(schedules, CLASSES[name]))
    made.pp_group_size, made._n_microbatches, made.n_local_stages = devices, microbatches, chunks
    made._num_stages = made.num_stages = devices * chunks
    made.number_of_rounds = max(1, microbatches // devices)
    made.microbatches_per_round = microbatches // made.number_of_rounds
    found = []
    for rank in range(devices):
        row = [cell for action in made._calculate_single_rank_operations(rank) for cell in cells(action)]
        if name == "dualpipev":
            row = [half for cell in row for half in halves(cell)]
        found.append(row)
    return found


def cells(action: Any) -> list[str]:
    if action is None:
        return []
    if action.sub_actions:
        return [cell for one in action.sub_actions for cell in cells(one)]
    return [f"{action.stage_index}{action.computation_type.value}{action.microbatch_index}"]


def halves(cell: str) -> list[str]:
    return [cell.replace("B", "I"), cell.replace("B", "W")] if "B" in cell else [cell]


@pytest.mark.parametrize(("name", "chunks"), CHUNKS)
@pytest.mark.parametrize("devices", [1, 2, 3, 4, 5])
def test_the_orders_are_torchs(name: str, chunks: int, devices: int) -> None:
    schedule, tried = VIRTUAL[name], 0
    for microbatches in range(1, 24):
        if not schedule.rule(devices, microbatches):
            expected, tried = torch_rows(name, devices, chunks, microbatches), tried + 1
            for rank in range(devices):
                row, own = (
                    schedule.row(rank, devices, chunks, microbatches),
                    schedule.stages_of(rank, devices, chunks),
                )
                parts = zip(row.chunk.tolist(), row.direction.tolist(), row.microbatch.tolist(), strict=True)
                assert [f"{own[c]}{DIRECTIONS[d]}{m}" for c, d, m in parts] == expected[rank]
    assert tried > 3


@pytest.mark.parametrize(("name", "chunks"), CHUNKS)
@pytest.mark.parametrize("devices", [1, 2, 3, 5])
def test_more_microbatches_than_counted_change_nothing(name: str, chunks: int, devices: int) -> None:
    """What is in flight is counted for fewer microbatches than a long batch has."""
    for microbatches in (1, 3, 2 * devices, 12 * devices, 30 * devices, 30 * devices + 1):
        if VIRTUAL[name].rule(devices, microbatches):
            continue
        for rank in range(devices):
            row = VIRTUAL[name].row(rank, devices, chunks, microbatches)
            held, reached, last = [0] * chunks, set(), int(row.direction.max())
            for chunk, direction in zip(row.chunk.tolist(), row.direction.tolist(), strict=True):
                held[chunk] += (direction == FORWARD) - (direction == last)
                reached.add(tuple(held))
            found = samples_by_chunk(name, rank, devices, chunks, microbatches)
            assert set(found) <= reached
            assert all(any((np.array(one) <= each).all() for each in found) for one in reached)


def test_a_v_holds_two_samples_for_each_device() -> None:
    """Counted by stages: ZB-V 2 p on every device, DualPipeV one more."""
    for rank in range(4):
        assert {sum(one) for one in samples_by_chunk("zbv", rank, 4, 2, 64)} == {8}
        assert {sum(one) for one in samples_by_chunk("dualpipev", rank, 4, 2, 64)} == {9}


@pytest.mark.parametrize(
    ("name", "number", "words"),
    [
        ("interleaved_1f1b", 1, "virtual_stages = 1: must be an integer from 2 to 1,024"),
        ("zbv", 3, "virtual_stages = 3: must be 2 for schedule 'zbv'"),
        ("zb_h1", True, "virtual_stages = True"),
    ],
)
def test_numbers_that_a_schedule_does_not_have_are_refused(name: str, number: int, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        VIRTUAL[name].chunks_for(number)


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
@pytest.mark.parametrize("microbatches", [1, 2, 3, 7])
@pytest.mark.parametrize("devices", [1, 2, 4])
def test_rows_of_one_stage_hold_what_the_rule_says(name: str, microbatches: int, devices: int) -> None:
    """And run each microbatch forward and backward once."""
    for rank in range(devices):
        held = stash(name, rank, devices, microbatches).activations
        assert samples_by_chunk(name, rank, devices, 1, microbatches) == ((held,),)
        row = ALONE[name].row(rank, devices, 1, microbatches)
        assert len(set(row.cells())) == len(row.cells()) == 2 * microbatches
