"""Transfers between two processes are measured, and neither process is left behind."""

from __future__ import annotations

import multiprocessing
import threading

import numpy as np
import pytest

import partitioner as pt
from partitioner.base.errors import BackendUnavailable, OptionError
from partitioner.integrations.torch import links

torch = pytest.importorskip("torch", reason="transfers of torch need torch")
THREE = pt.Devices.accelerated(3)
FIRST, SECOND, THIRD = THREE.names
SIZES = (256, 4 * 2**20)


@pytest.mark.xdist_group("processes")
def test_a_pair_is_a_line_in_both_directions_and_the_other_pairs_cost_nothing() -> None:
    phases: list[str] = []
    found = links(
        THREE,
        pairs=[(THIRD, FIRST), (FIRST, THIRD)],
        sizes=SIZES,
        rounds=5,
        on_progress=lambda p: phases.append(p.phase),
    )
    slope, intercept = np.array(found.transfers.slope), np.array(found.transfers.intercept)
    assert slope[0, 2] == slope[2, 0]
    assert intercept[0, 2] == intercept[2, 0]
    assert slope[0, 2] * SIZES[1] + intercept[0, 2] > 0.01  # ms for 4 MiB
    assert slope[0, 1] == slope[1, 2] == intercept[1, 0] == 0
    assert set(found.unmeasured) == {(FIRST, SECOND), (SECOND, FIRST), (SECOND, THIRD), (THIRD, SECOND)}
    assert phases == [f"transfers {FIRST}, {THIRD}"]
    assert multiprocessing.active_children() == []


@pytest.mark.xdist_group("processes")
def test_processes_that_take_too_long_are_ended() -> None:
    with pytest.raises(BackendUnavailable, match=r"backend = 'gloo': two processes did not end in 0.2 s"):
        links(THREE, pairs=[(FIRST, SECOND)], sizes=[2**20], rounds=10**6, time_limit=0.2)
    assert multiprocessing.active_children() == []


@pytest.mark.xdist_group("processes")
def test_a_request_to_stop_leaves_the_pairs_until_then() -> None:
    event = threading.Event()
    event.set()
    found = links(THREE, sizes=[2**20], rounds=10**6, stop=event)
    assert len(found.unmeasured) == 6
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("backend", "mpi", "backend = 'mpi': must be one of gloo, nccl"),
        ("pairs", [(FIRST, FIRST)], "must be a pair of two different devices"),
        ("pairs", [FIRST], "must be a pair of two different devices"),
        ("pairs", [(FIRST, "accelerator3")], "pairs: 'accelerator3': must be one of"),
        ("sizes", [], r"sizes: \[\]: must be integers from 1"),
        ("sizes", [8, 0], "sizes: 0: must be integers from 1"),
        ("rounds", 0, "rounds = 0: must be an integer of at least 1"),
        ("time_limit", 0, "time_limit = 0: must be a number above 0"),
    ],
)
def test_an_option_out_of_range_is_named(option: str, value: object, text: str) -> None:
    with pytest.raises(OptionError, match=text):
        links(THREE, **{option: value})  # type: ignore[arg-type]


def test_nccl_needs_a_cuda_device_for_each_device() -> None:
    count = torch.cuda.device_count()
    many = pt.Devices.accelerated(count + 2)
    with pytest.raises(BackendUnavailable, match=f"torch finds {count}: use backend='gloo'"):
        links(many, backend="nccl", pairs=[(many.names[count], many.names[count + 1])])


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="torch finds fewer than two CUDA devices")
def test_nccl_is_measured_between_two_cuda_devices() -> None:
    found = links(pt.Devices.accelerated(2), backend="nccl", rounds=5)
    assert np.array(found.transfers.slope)[0, 1] > 0
    assert found.unmeasured == ()
