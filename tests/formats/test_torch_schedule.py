"""torch's schedule files are read for what they mean here; what means nothing is told with its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from partitioner import OptionError, WorkloadError
from partitioner.formats.torch_schedule import load_torch_schedule
from partitioner.schedule import Table

FEW = settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
PIECES = ("0F0", "1B0", "0I1", "0W1", "", "1SEND_F0", "0RECV_B1", "0UNSHARD", "(", ")", ";", "OVERLAP_F_B",
          ",", "\n", '"', " ", "-1F0", "x")  # fmt: skip


def read(tmp_path: Path, text: str, devices: list[str] | None = None) -> Table:
    path = tmp_path / "schedule.csv"
    path.write_text(text, encoding="utf-8")
    return load_torch_schedule(path, devices)


def test_passes_and_pauses(tmp_path: Path) -> None:
    found = read(tmp_path, "0F0,0F1,,0I0,0W0,0B1\r\n, 1F0 ,1B0,1F1,1B1\r\n", ["gpu0", "gpu1"])
    assert found.rows() == {
        "gpu0": ["0F0", "0F1", "0I0", "0W0", "0B1"],
        "gpu1": ["1F0", "1B0", "1F1", "1B1"],
    }
    assert found.at_once is None


def test_devices_are_ranks_by_default(tmp_path: Path) -> None:
    assert read(tmp_path, "0F0\n1F0").devices == ("rank0", "rank1")


def test_communication_follows_from_the_passes(tmp_path: Path) -> None:
    """So transfers and shards leave no trace."""
    first = "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD"
    second = "1UNSHARD,1RECV_F0,1F0,1I0,1SEND_B0,1W0,1REDUCE_GRAD"
    assert read(tmp_path, f"{first}\n{second}").rows() == {
        "rank0": ["0F0", "0B0"],
        "rank1": ["1F0", "1I0", "1W0"],
    }


def test_overlapping_passes_follow_one_another(tmp_path: Path) -> None:
    text = "0F0,1F0,1B0,(0F1;0B0)OVERLAP_F_B,1F1,1I1,(0I1; 0F2)OVERLAP_F_B"
    assert read(tmp_path, text).rows()["rank0"] == [
        *("0F0", "1F0", "1B0", "0F1", "0B0", "1F1", "1I1", "0I1", "0F2"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file: is empty"),
        ("0F0\n,,\n", "row 1: has no pass"),
        ("0F0,0X0", "row 0, cell 1: '0X0': must read as stage, F, B, I or W, and microbatch"),
        ("0F", "row 0, cell 0: '0F': must read as"),
        ("0F0junk", "row 0, cell 0: '0F0junk': must read as"),
        ("0F0,0F0", "row 0, cell 1: 0F0: is given twice"),
        ("0F0\n0F1", "row 1, cell 0: 0F1: stage 0 is in row 0: torch puts a stage on one rank"),
        ("0F0,(0F1)OVERLAP_F_B", "row 0, cell 1: '(0F1)OVERLAP_F_B': must hold a forward and a backward"),
        ("0F0,(0F1;0F2)OVERLAP_F_B", "must hold a forward and a backward pass"),
        ("0F0,(0F1;0SEND_F0)OVERLAP_F_B", "must hold a forward and a backward pass"),
        ("0F0,(0F1;0B0)TOGETHER", "must read as stage"),
        ("0SEND_F0,0F0", "row 0, cell 0: 0SEND_F0: must come after its pass"),
        ("0F0,0B0,0RECV_B0", "row 0, cell 2: 0RECV_B0: must come before its pass"),
        ("0F0,0UNSHARD0", "row 0, cell 1: '0UNSHARD0': must read as"),
        ('0F0,"0F1', "is not CSV"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(WorkloadError) as error:
        read(tmp_path, text)
    assert message in str(error.value)
    assert str(error.value).startswith(str(tmp_path))


@pytest.mark.parametrize("devices", [["gpu0"], ["gpu0", "gpu0"], ["a", "b", "c"]])
def test_every_row_needs_a_device(tmp_path: Path, devices: list[str]) -> None:
    with pytest.raises(OptionError, match="must be 2 different names"):
        read(tmp_path, "0F0\n1F0", devices)


@FEW
@given(pieces=st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12))
def test_a_table_or_a_workload_error(tmp_path: Path, pieces: list[str]) -> None:
    text = "".join(pieces).encode("utf-8", "ignore").decode()
    try:
        found = read(tmp_path, text)
    except WorkloadError as error:
        assert error.flaws
    else:
        assert len(found.stage) == len(set(zip(found.stage, found.microbatch, found.direction, strict=True)))
