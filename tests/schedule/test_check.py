"""Every way in which a table can be broken is found and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from partitioner import Devices, Graph, WorkloadError
from partitioner.schedule import Table, simulate
from partitioner.schedule.check import check
from partitioner.schedule.passes import Passes, split_backward
from partitioner.schedule.reading import read_passes
from tests.schedule.lines import Line, equal_stages

ROWS = {"gpu0": ["0F0", "0F1", "", "0B0", "", "0B1"], "gpu1": ["", "1F0", "1B0", "1F1", "1B1"]}
HALVES = {
    "gpu0": ["0F0", "0F1", "0I0", "0W0", "0I1", "0W1"],
    "gpu1": ["1F0", "1I0", "1F1", "1I1", "1W0", "1W1"],
}


def flaws(rows: Any, passes: Passes | None = None, microbatches: int = 2, **options: Any) -> str:
    line = passes or read_passes(*equal_stages(2))
    return "\n".join(check(Table.from_rows(rows), line, microbatches, **options))


def test_sound_tables_have_no_flaws() -> None:
    assert flaws(ROWS) == ""
    assert flaws(HALVES, split_backward(read_passes(*equal_stages(2)), 0.5)) == ""


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (["0F0", "0F1", "0B0"], "0B1 is missing"),
        (["0F0", "0F1", "0B0", "0B1", "0B1"], "0B1 is listed 2 times"),
        (["0F0", "0F1", "0B0", "0B1", "2F0"], "2F0: no such pass; there are 2 stages, backward passes: B"),
        (["0F0", "0F1", "0B0", "0B1", "0I0"], "0I0: no such pass"),
        (["0F0", "0F1", "0B0", "0B1", "0F2"], "0F2: there are 2 microbatches"),
        (["0B0", "0F0", "0F1", "0B1"], "0B0 needs 0F0, which comes later on gpu0"),
        (["0F0", "0B0", "0F1", "0B1"], ""),
        (["0F1", "0F0", "0B0", "0B1"], ""),
        (["0F1", "0B1", "0F0", "0B0"], "devices wait for one another: gpu0 at 0B1, gpu1 at 1F0"),
    ],
)
def test_a_broken_row_is_named(row: list[str], text: str) -> None:
    found = flaws(ROWS | {"gpu0": row})
    assert text in found if text else found == ""


def test_weights_before_inputs_are_refused() -> None:
    passes = split_backward(read_passes(*equal_stages(2)), 0.5)
    row = ["0F0", "0F1", "0W0", "0I0", "0I1", "0W1"]
    assert flaws(HALVES | {"gpu0": row}, passes) == "0W0 needs 0I0, which comes later on gpu0"
    assert "0B0: no such pass; there are 2 stages, backward passes: I and W" in flaws(ROWS, passes)


def test_backward_cells_on_a_graph_without_them() -> None:
    passes = read_passes(*equal_stages(2, trains=False))
    assert "0B0: no such pass; there are 2 stages, backward passes: none" in flaws(ROWS, passes)


def test_stages_stay_on_their_devices() -> None:
    rows = {"gpu0": ROWS["gpu1"], "gpu1": ROWS["gpu0"]}
    assert "1F0 is on gpu0, its stage on gpu1" in flaws(rows)


def test_unknown_and_doubled_devices() -> None:
    assert flaws(ROWS | {"gpu7": []}) == "device gpu7 is not in use; those in use are gpu0, gpu1"
    table = Table.from_rows(ROWS)
    twice = Table(("gpu0", "gpu0"), table.start, table.stage, table.microbatch, table.direction)
    assert check(twice, read_passes(*equal_stages(2))) == ("device gpu0 has two rows",)


def test_a_missing_device_leaves_passes_out() -> None:
    assert "1F0 is missing" in flaws({"gpu0": ROWS["gpu0"]})


def test_a_sample_stays_with_its_replica() -> None:
    graph, _, placement = equal_stages(2)
    devices = Devices(equal_stages(3).devices.kinds)
    passes = read_passes(graph, devices, placement, replicas={"gpu0": ["gpu2"]})
    rows = {"gpu0": ["0F0", "0B0"], "gpu1": ROWS["gpu1"], "gpu2": ["0F1", "0B1"]}
    assert flaws(rows, passes) == ""
    crossed = rows | {"gpu0": ["0F0", "0B1"], "gpu2": ["0F1", "0B0"]}
    assert "microbatch 0 of the stage of gpu0 is on more than one: gpu0, gpu2" in flaws(crossed, passes)


def with_activations(line: Line) -> Line:
    graph = line.graph
    time = {"gpu": graph.time[0]}
    edges, backward = graph.edges.tolist(), graph.backward
    return Line(
        Graph.from_arrays(time, edges, backward=backward, activations=1.0, parameters=10.0),
        line.devices,
        line.placement,
    )


def test_memory_limits_hold() -> None:
    """Two nodes a stage, each with 10 of parameters and 1 of activations a sample."""
    passes = read_passes(*with_activations(equal_stages(2)))
    assert flaws(ROWS, passes, memory_limit=np.array([24.0, 22.0])) == ""
    found = flaws(ROWS, passes, memory_limit=np.array([23.0, 22.0]))
    assert found == "gpu0 holds 24 (2 samples in flight), its memory is 23"
    found = flaws(ROWS, passes, memory_limit=np.array([24.0, 22.0]), versions=True)
    assert found == "gpu0 holds 44 (2 samples in flight), its memory is 24"


def test_the_simulation_refuses_what_the_check_refuses() -> None:
    with pytest.raises(WorkloadError, match="table: 1F0 is missing"):
        simulate(*equal_stages(2), Table.from_rows({"gpu0": ROWS["gpu0"]}))


def test_cells_that_read_as_nothing() -> None:
    with pytest.raises(WorkloadError) as caught:
        Table.from_rows({"gpu0": ["0F0", "F0", "0X1", None, "00F1", "1F"]})
    assert [(flaw.where, flaw.field) for flaw in caught.value.flaws] == [
        ("device gpu0", f"cell {i}") for i in (1, 2, 4, 5)
    ]


def test_rows_are_read_back() -> None:
    table = Table.from_rows(ROWS)
    assert table.rows() == {name: [cell for cell in row if cell] for name, row in ROWS.items()}
    assert Table.from_rows(table.rows()).rows() == table.rows()
