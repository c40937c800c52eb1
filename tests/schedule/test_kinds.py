"""Schedules run what their docstrings draw, hold what the rules say, and pass their own check."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from partitioner import OptionError
from partitioner.schedule import Table, simulate
from partitioner.schedule.check import check
from partitioner.schedule.kinds.registry import KINDS
from partitioner.schedule.passes import Passes, split_backward
from partitioner.schedule.reading import read_passes
from partitioner.schedule.running import grid
from partitioner.schedule.simulation import table_for
from partitioner.workload.in_flight import stash
from tests.schedule.lines import equal_stages, vee_stages

VEES = ("zbv", "dualpipev")
TRAINING = [name for name, kind in KINDS.items() if kind.trains is not False]


def table(name: str, stages: int, microbatches: int, chunks: int = 1) -> tuple[Table, Passes]:
    kind = KINDS[name]
    line = equal_stages(stages, chunks, trains=kind.trains is not False)
    passes = read_passes(*(vee_stages(stages) if name in VEES else line))
    passes = split_backward(passes, 0.5) if kind.halves else passes
    return table_for(kind, passes, microbatches), passes


def drawn(text: str) -> list[list[str]]:
    """The rows of the drawing in a docstring, a point for a pause."""
    return [row.split() for row in re.findall(r"device \d+ +(.*)", text)]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "single_stream"])
def test_the_drawing_is_what_runs(name: str) -> None:
    rows = drawn(KINDS[name].__doc__ or "")
    cells = [cell for row in rows for cell in row if cell not in (".", "...")]
    microbatches = max(int(cell[-1]) for cell in cells) + 1
    chunks = (max(int(cell[0]) for cell in cells) + 1) // len(rows)
    found = [
        [cell or "." for cell in row] for row in grid(*table(name, len(rows), microbatches, chunks)).values()
    ]
    if rows[0][-1] == "...":
        rows = [row[:-1] for row in rows]
        found = [row[: len(drawing)] for row, drawing in zip(found, rows, strict=True)]
    assert found == rows


def test_the_drawing_of_a_single_stream() -> None:
    passes = read_passes(*equal_stages(3, trains=False))
    found = grid(KINDS["single_stream"].table(passes, 2), passes)
    rows = drawn(KINDS["single_stream"].__doc__ or "")
    assert [[cell or "." for cell in row] for row in found.values()] == rows


@pytest.mark.parametrize("name", TRAINING)
@pytest.mark.parametrize(("stages", "microbatches"), [(1, 1), (1, 5), (3, 3), (3, 9), (8, 8), (8, 32)])
def test_every_table_passes_the_check(name: str, stages: int, microbatches: int) -> None:
    count = max(microbatches, 2 * stages) if name == "dualpipev" else microbatches
    assert check(*table(name, stages, count, 1 + (name == "interleaved")), count) == ()


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "1f1b_async"])
@pytest.mark.parametrize(("stages", "microbatches"), [(1, 1), (4, 2), (4, 4), (4, 16), (8, 9)])
def test_stages_hold_what_the_rules_say(name: str, stages: int, microbatches: int) -> None:
    found = simulate(*equal_stages(stages), name, microbatches)
    for stage in range(stages):
        expected = min(microbatches, stash(name, stage, stages, microbatches).activations)
        assert found.in_flight[stage] == expected


@pytest.mark.parametrize(("stages", "microbatches", "chunks"), [(2, 4, 2), (4, 4, 2), (4, 16, 3), (8, 16, 2)])
def test_interleaved_stages_hold_what_the_rule_says(stages: int, microbatches: int, chunks: int) -> None:
    found = simulate(*equal_stages(stages, chunks), "interleaved", microbatches)
    expected = [stash("interleaved", i, stages, microbatches, chunks=chunks)[0] for i in range(stages)]
    assert found.in_flight.tolist() == expected


@pytest.mark.parametrize(("stages", "microbatches"), [(1, 3), (4, 4), (4, 16), (8, 24)])
def test_zero_bubble_holds_no_more_than_the_first_stage_of_1f1b(stages: int, microbatches: int) -> None:
    """Each device holds p samples; of these as many wait for the gradients of their inputs as under 1F1B."""
    rows, _ = table("zb-h1", stages, microbatches)
    found = simulate(*equal_stages(stages), "zb-h1", microbatches)
    assert found.in_flight.tolist() == [stages] * stages
    for stage in range(stages):
        row = slice(rows.start[stage], rows.start[stage + 1])
        forward, inputs = rows.direction[row] == 0, rows.direction[row] == 2
        waiting = np.cumsum(forward) - np.cumsum(inputs) + inputs
        assert waiting.max() == stash("zb-h1", stage, stages, microbatches).activations


def broken(name: str, line: tuple[Any, Any, Any], microbatches: Any = 4, **options: Any) -> str:
    with pytest.raises(OptionError) as caught:
        simulate(*line, name, microbatches, **options)
    return str(caught.value)


def test_what_does_not_suit_is_refused() -> None:
    forward, line = equal_stages(2, trains=False), equal_stages(2)
    assert "schedule = '1f1b': is for graphs with backward nodes" in broken("1f1b", forward)
    assert "schedule = 'inference': is for graphs without backward nodes" in broken("inference", line)
    assert "schedule = '2f2b': must be a Table, or one of single_stream" in broken("2f2b", line)
    assert "stages k and 2 p - 1 - k must be on device k" in broken("zbv", equal_stages(2, 2))
    assert "microbatches = 3: must be at least 4 for 2 devices" in broken("dualpipev", vee_stages(2), 3)
    assert "microbatches = 5: must be a multiple of 2, the number of rounds" in broken(
        "interleaved", equal_stages(2, 2), 5
    )
    assert "microbatches = 0: must be an integer" in broken("1f1b", line, 0)
    assert "microbatches = None" in broken("1f1b", line, None)
    assert "links = 'tin'" in broken("1f1b", line, links="tin")
    assert "input_share = 2" in broken("zb-h1", line, input_share=2)
    for bad in (-1.0, float("inf"), float("nan"), "1", True):
        assert "pass_time = " in broken("1f1b", line, pass_time=bad)


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "zb-h1"])
def test_a_time_of_each_pass_is_added_to_its_processing(schedule: str) -> None:
    """A sample's passes without transfers: the same as a graph whose every node, one a pass, takes longer."""
    graph, devices, placement = equal_stages(3)
    count = 2 if schedule != "zb-h1" else 3  # passes of a stage
    plain = simulate(graph, devices, placement, schedule, 5)
    longer = simulate(graph, devices, placement, schedule, 5, pass_time=0.25)
    added = (longer.end - longer.begin)[:, 1] - (plain.end - plain.begin)[:, 1]
    assert np.allclose(added, 0.25)
    assert np.allclose(longer.busy - plain.busy, 5 * count * 0.25)


def test_stages_that_do_not_go_round_are_not_interleaved() -> None:
    graph, devices, placement = equal_stages(2, 2)
    swapped = placement | {2: "gpu1", 3: "gpu0", 4: "gpu0", 5: "gpu1"}
    assert "stage k must be on device k mod p" in broken("interleaved", (graph, devices, swapped))
